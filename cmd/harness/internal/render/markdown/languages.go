package markdown

import (
	"strings"
	"sync"
)

// language has the rules of the highlighter for a language.
type language struct {
	comments []comment
	quotes   []string // longer ones first
	keywords words    // with literals such as true
	types    words
	builtins words
	// definers are the keywords after which a name is a definition.
	definers words
	// calls colours a name in front of a parenthesis.
	calls bool
	// keys colours a name or a string in front of the separator.
	keys      bool
	separator string
	variables bool // $name
	dashes    bool // are part of a name
	anyCase   bool // of keywords
}

type comment struct {
	open, close string
	atWord      bool // only at the start of a word
}

type words map[string]bool

func set(list string) words {
	w := words{}
	for word := range strings.FieldsSeq(list) {
		w[word] = true
	}
	return w
}

var (
	slashes   = []comment{{open: "//", close: "\n"}, {open: "/*", close: "*/"}}
	hash      = []comment{{open: "#", close: "\n", atWord: true}}
	single    = []string{`"`, `'`}
	withTicks = []string{`"`, `'`, "`"}
)

// languages returns the languages by name and alias.
var languages = sync.OnceValue(func() map[string]*language {
	all := map[string]*language{}
	for names, l := range map[string]*language{
		"go golang": {comments: slashes, quotes: withTicks, calls: true,
			keywords: set("break case chan const continue default defer else fallthrough false for func go goto if import interface iota map nil package range return select struct switch true type var"),
			types:    set("any bool byte comparable complex128 complex64 error float32 float64 int int16 int32 int64 int8 rune string uint uint16 uint32 uint64 uint8 uintptr"),
			builtins: set("append cap clear close complex copy delete imag len make max min new panic print println real recover")},
		"python py python3 py3": {comments: hash, quotes: []string{`"""`, `'''`, `"`, `'`}, definers: set("def class"),
			keywords: set("and as assert async await break case class continue def del elif else except False finally for from global if import in is lambda match None nonlocal not or pass raise return True try while with yield"),
			builtins: set("abs all any bool bytes dict enumerate filter float input int isinstance len list map max min object open print range repr reversed self set sorted str sum super tuple type zip Exception ValueError TypeError KeyError RuntimeError")},
		"javascript js jsx typescript ts tsx mjs cjs node": {comments: slashes, quotes: withTicks, calls: true,
			keywords: set("abstract as async await break case catch class const continue debugger declare default delete do else enum export extends false finally for from function get if implements import in instanceof interface keyof let new null of private protected public readonly return set static super switch this throw true try type typeof undefined var void while with yield"),
			types:    set("any bigint boolean never number object string symbol unknown"),
			builtins: set("Array Boolean Date Error JSON Map Math Number Object Promise RegExp Set String console document process require window")},
		"java kotlin kt scala groovy csharp cs c# dart": {comments: slashes, quotes: []string{`"""`, `"`, `'`}, calls: true,
			keywords: set("abstract as assert async await base break by case catch checked class companion const constructor continue data def default delegate do else enum event explicit extends extern false final finally fixed for foreach fun get if implements implicit import in init instanceof interface internal is late lateinit lazy let lock match namespace native new null object of open operator out override package params private protected public readonly record ref required return sealed set sizeof static strictfp struct super switch synchronized this throw throws trait transient true try typealias typeof unchecked unsafe using val var virtual void volatile when where while with yield"),
			types:    set("Any Boolean Byte Char Double Float Int Integer List Long Map Nothing Object Set Short String Unit bool boolean byte char decimal double dynamic float int long nint num object sbyte short string uint ulong ushort")},
		"c h cpp c++ cc cxx hpp objc objective-c cuda arduino": {comments: slashes, quotes: single, calls: true,
			keywords: set("alignas alignof asm auto break case catch class concept const const_cast consteval constexpr constinit continue co_await co_return co_yield decltype default define delete do dynamic_cast else endif enum explicit export extern false final for friend goto if ifdef ifndef include inline mutable namespace new noexcept nullptr operator override pragma private protected public register reinterpret_cast requires restrict return sizeof static static_assert static_cast struct switch template this thread_local throw true try typedef typeid typename union using virtual volatile while NULL"),
			types:    set("bool char char16_t char32_t char8_t double float int int16_t int32_t int64_t int8_t intptr_t long ptrdiff_t short signed size_t ssize_t uint16_t uint32_t uint64_t uint8_t uintptr_t unsigned void wchar_t")},
		"rust rs": {comments: slashes, quotes: []string{`"`}, calls: true, definers: set("fn struct enum trait mod"),
			keywords: set("as async await break const continue crate dyn else enum extern false fn for if impl in let loop match mod move mut pub ref return self Self static struct super trait true type union unsafe use where while"),
			types:    set("Arc Box HashMap Option Rc Result String Vec bool char f32 f64 i128 i16 i32 i64 i8 isize str u128 u16 u32 u64 u8 usize"),
			builtins: set("None Some Ok Err")},
		"swift": {comments: slashes, quotes: []string{`"""`, `"`}, calls: true, definers: set("func class struct enum protocol"),
			keywords: set("actor as associatedtype async await break case catch class continue default defer deinit do else enum extension fallthrough false fileprivate final for func guard if import in init inout internal is lazy let mutating nil open operator override private protocol public repeat rethrows return self Self some static struct subscript super switch throw throws true try typealias var weak where while"),
			types:    set("Any Array Bool Character Dictionary Double Float Int Int32 Int64 Set String UInt Void")},
		"php": {comments: append([]comment{{open: "#", close: "\n", atWord: true}}, slashes...), quotes: single, calls: true, variables: true,
			keywords: set("abstract and array as break callable case catch class clone const continue declare default do echo else elseif empty enum extends false final finally fn for foreach function global if implements include instanceof interface isset list match namespace new null or print private protected public readonly require require_once return static switch this throw trait true try unset use var while xor yield"),
			types:    set("bool float int mixed object string void")},
		"ruby rb": {comments: hash, quotes: withTicks, definers: set("def class module"),
			keywords: set("alias and begin break case class def defined do else elsif end ensure false for if in module next nil not or redo rescue retry return self super then true undef unless until when while yield"),
			builtins: set("attr_accessor attr_reader attr_writer extend include lambda loop private proc protected public puts print raise require require_relative")},
		"lua": {comments: []comment{{open: "--[[", close: "]]"}, {open: "--", close: "\n"}}, quotes: single, calls: true,
			keywords: set("and break do else elseif end false for function goto if in local nil not or repeat return then true until while")},
		"elixir ex exs": {comments: hash, quotes: []string{`"""`, `"`, `'`}, definers: set("def defp defmodule defmacro"),
			keywords: set("after alias and case catch cond def defmacro defmodule defp defstruct do else end false fn for if import in nil not or quote raise receive require rescue true try unless use when with")},
		"haskell hs elm": {comments: []comment{{open: "--", close: "\n"}, {open: "{-", close: "-}"}}, quotes: []string{`"`},
			keywords: set("case class data deriving do else forall if import in infix infixl infixr instance let module newtype of otherwise qualified then type where")},
		"r": {comments: hash, quotes: single, calls: true,
			keywords: set("break else FALSE for function if in Inf NA NaN next NULL repeat return TRUE while")},
		"sh bash shell zsh console shell-session fish ksh": {comments: hash, quotes: single, variables: true,
			keywords: set("case do done elif else esac fi for function if in select then time until while"),
			builtins: set("alias bg break cd command continue declare dirs echo eval exec exit export fg getopts hash jobs kill let local popd printf pushd pwd read readonly return set shift source test trap type ulimit umask unalias unset wait")},
		"powershell ps1 pwsh": {comments: append([]comment{{open: "<#", close: "#>"}}, hash...), quotes: single, variables: true, anyCase: true, dashes: true,
			keywords: set("begin break catch continue do else elseif end exit filter finally for foreach function if in param process return switch throw trap try until while")},
		"sql mysql postgresql postgres sqlite plpgsql": {comments: []comment{{open: "--", close: "\n"}, {open: "/*", close: "*/"}}, quotes: []string{`'`, `"`}, anyCase: true,
			keywords: set("add all alter and any as asc begin between by case cascade check column commit constraint create cross database default delete desc distinct drop else end exists explain false foreign from full function group having if in index inner insert intersect into is join key left like limit not null offset on or order outer partition primary references returning right rollback select set table then transaction trigger true truncate union unique update using values view when where window with"),
			types:    set("bigint blob boolean bytea char date decimal double float int integer json jsonb numeric real serial smallint text time timestamp timestamptz uuid varchar")},
		"json jsonc json5 jsonl ndjson": {comments: slashes, quotes: single, keys: true, separator: ":", keywords: set("true false null")},
		"yaml yml":                      {comments: hash, quotes: single, keys: true, separator: ":", dashes: true, keywords: set("true false null yes no on off")},
		"toml ini cfg properties conf env dotenv editorconfig": {comments: append([]comment{{open: ";", close: "\n", atWord: true}}, hash...), quotes: []string{`"""`, `'''`, `"`, `'`}, keys: true, separator: "=", dashes: true, keywords: set("true false")},
		"hcl terraform tf": {comments: append(append([]comment{}, hash...), slashes...), quotes: []string{`"`}, keys: true, separator: "=", dashes: true,
			keywords: set("data false for if in locals module null output provider resource terraform true variable")},
		"css scss less sass": {comments: slashes, quotes: single, keys: true, separator: ":", dashes: true, keywords: set("important media import keyframes include mixin supports"), variables: true},
		"dockerfile docker containerfile": {comments: hash, quotes: single, variables: true,
			keywords: set("ADD ARG AS CMD COPY ENTRYPOINT ENV EXPOSE FROM HEALTHCHECK LABEL MAINTAINER ONBUILD RUN SHELL STOPSIGNAL USER VOLUME WORKDIR")},
		"makefile make mk": {comments: hash, quotes: single, variables: true, dashes: true, keys: true, separator: "=",
			keywords: set("define else endef endif export ifdef ifeq ifndef ifneq include override unexport vpath")},
		"protobuf proto": {comments: slashes, quotes: single, definers: set("message enum service rpc"),
			keywords: set("enum extend extensions false import map message oneof option optional package public repeated required reserved returns rpc service stream syntax true"),
			types:    set("bool bytes double fixed32 fixed64 float int32 int64 sfixed32 sfixed64 sint32 sint64 string uint32 uint64")},
		"graphql gql": {comments: hash, quotes: []string{`"""`, `"`}, keywords: set("directive enum extend false fragment implements input interface mutation null on query scalar schema subscription true type union"), types: set("Boolean Float ID Int String")},
		"nginx":       {comments: hash, quotes: single, variables: true, keywords: set("events http if include listen location proxy_pass return root server upstream")},
		"zig":         {comments: slashes, quotes: single, calls: true, keywords: set("align and anytype asm async await break catch comptime const continue defer else enum errdefer error export extern false fn for if inline null or orelse packed pub return struct suspend switch test true try undefined union unreachable usingnamespace var volatile while"), types: set("bool f32 f64 i16 i32 i64 i8 isize type u16 u32 u64 u8 usize void")},
	} {
		for name := range strings.FieldsSeq(names) {
			all[name] = l
		}
	}
	return all
})
