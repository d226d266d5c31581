package catalogue_test

import (
	"reflect"
	"strings"
	"testing"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/model/catalogue"
)

func extend(t *testing.T, file string) *catalogue.Catalogue {
	t.Helper()
	c, err := catalogue.Default().Extend("own.yaml", []byte(file))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

const corp = `providers:
  - name: corp
    aliases: [corporate]
    wire: [responses, chat]
    address: https://${CORP_HOST}.example.com/v1
    address_variable: CORP_BASE_URL
    domains: [example.org]
    key_variable: CORP_KEY
    key_optional: true
    header: api-key
    headers: {x-team: a, "x-second": "${CORP_SECOND}"}
    token_command: [corp, token, --plain]
    reasoning: {field: reasoning, back: calls, blank: "", signature: true, chunks: true}
    effort: thinking
    cache_key: true
    answer_schema: true
    no_stream_options: true
    no_user_after_results: true
    short_call_ids: true
    body: {top: {n: 1, list: [a, 2.5, true, null]}, route: fast}
    images: true
    pdf: true
    models_of: openai
    model_prefix: "gw/"
`

func TestProvider(t *testing.T) {
	c := extend(t, corp)
	blank := ""
	want := &catalogue.Provider{
		Name: "corp", Aliases: []string{"corporate"}, Wires: []catalogue.Wire{catalogue.WireResponses, catalogue.WireChat},
		Address: "https://${CORP_HOST}.example.com/v1", AddressVariable: "CORP_BASE_URL", Domains: []string{"example.org"},
		KeyVariable: "CORP_KEY", KeyOptional: true, KeyHeader: "Api-Key", Headers: map[string]string{"X-Team": "a", "X-Second": "${CORP_SECOND}"},
		TokenCommand: []string{"corp", "token", "--plain"},
		Reasoning:    catalogue.ReasoningField{Field: "reasoning", Back: catalogue.BackCalls, Blank: &blank, Signature: true, Chunks: true},
		Effort:       catalogue.EffortThinking, CacheKey: true, AnswerSchema: true, NoStreamOptions: true, NoUserAfterResults: true, ShortCallIDs: true,
		Images: true, PDF: true, ModelsOf: "openai", ModelPrefix: "gw/",
	}
	got := *c.Provider("corp")
	if body := got.Body; string(body["top"]) != `{"list":["a",2.5,true,null],"n":1}` || string(body["route"]) != `"fast"` || len(body) != 2 {
		t.Errorf("the body is %s", body)
	}
	got.Body = nil
	if !reflect.DeepEqual(&got, want) {
		t.Errorf("the provider is %+v, want %+v", &got, want)
	}
	if c.Provider("corporate") != c.Provider("corp") || c.Provider("nobody") != nil || catalogue.Default().Provider("corp") != nil {
		t.Error("a provider is not found by its alias, or where it is not")
	}
	if all := c.Providers(); all[0].Name != "openai" || all[len(all)-1].Name != "corp" || len(all) != len(catalogue.Default().Providers())+1 {
		t.Error("the providers are not in order, with the file's last")
	}
	if p, name := c.ProviderOf("corporate:a:b"); p != c.Provider("corp") || name != "a:b" {
		t.Errorf("the provider of the model is %v, its name %q", p, name)
	}
	if p, _ := c.ProviderOf("corp"); p != nil {
		t.Error("a reference without a colon has a provider")
	}
}

func TestFileReplacesProvider(t *testing.T) {
	c := extend(t, "providers: [{name: llamacpp, wire: messages, address: http://127.0.0.1:9}]")
	p := c.Provider("llamacpp")
	if p.Wires[0] != catalogue.WireMessages || p.AddressVariable != "" || c.Provider("llama.cpp") != nil {
		t.Errorf("the file's provider is %+v, want it whole", p)
	}
	if len(c.Providers()) != len(catalogue.Default().Providers()) {
		t.Error("a provider that is replaced is listed twice")
	}
}

func TestModelsOfAnotherProvider(t *testing.T) {
	c := extend(t, corp+"models:\n  - {ref: \"corp:own\", window: 7}\n")
	own := catalogue.Lookup("openai:gpt-5")
	own.Prices, own.Priced = catalogue.Prices{}, false
	for ref, want := range map[string]catalogue.Entry{
		"corp:gw/gpt-5":                     own,
		"corporate:gw/gpt-5":                own,
		"corp:gw/gpt-5-2025-08-07":          own,
		"corp:gpt-5":                        own,
		"corp:own":                          {Window: 7, Known: true, TokenFactor: 1.25},
		"corporate:own":                     {Window: 7, Known: true, TokenFactor: 1.25},
		"corp:gw/unknown":                   {Window: catalogue.FallbackWindow, TokenFactor: 1.25},
		"openai:gw/gpt-5":                   {Window: catalogue.FallbackWindow, TokenFactor: 1},
		"bedrock:claude-fable-5-x":          {Window: catalogue.FallbackWindow, TokenFactor: 1.25},
		"azure:gpt-4o-2024-08-06":           withoutPrices("openai:gpt-4o"),
		"bedrock:anthropic.claude-opus-5-5": withoutPrices("anthropic:claude-opus-5-5"),
	} {
		if got := c.Lookup(ref); !reflect.DeepEqual(got, want) {
			t.Errorf("%s is %+v, want %+v", ref, got, want)
		}
	}
	if long := c.Lookup("corp:gpt-5.5"); long.LongAbove != 0 || long.Long != (catalogue.Prices{}) {
		t.Errorf("prices of long requests are taken from another provider: %+v", long)
	}
}

func withoutPrices(ref string) catalogue.Entry {
	e := catalogue.Lookup(ref)
	e.Prices, e.Long, e.LongAbove, e.Priced = catalogue.Prices{}, catalogue.Prices{}, 0, false
	return e
}

func TestProviderReportsThePlace(t *testing.T) {
	const start = "providers:\n- {name: p, wire: chat, address: http://h/v1"
	for file, says := range map[string]string{
		"providers: 1": "1:12: providers must be a list of providers", "providers: [1]": "1:13: a provider must be a mapping",
		"providers: [{}]": "1:13: a provider has no name", "providers: [{name: p, wire: chat}]": "1:13: provider p has no address: set address, or address_variable",
		"providers: [{name: p, address: http://h}]":                  "1:13: provider p has no wire: set wire to chat, responses, messages",
		"providers: [{name: script, wire: chat, address: http://h}]": "1:20: name cannot be script",
		"providers: [{name: a b}]":                                   "1:20: name must be 1 to 64 letters", "providers: [{name: .a}]": "1:20: name must be", "providers: [{name: [a]}]": "1:20: name must be", "providers: [{name: null}]": "1:20: name must be", "providers: [{name: p, key_variable: }]": "1:37: key_variable must be",
		"providers: [{name: p, model_prefix: null}]": "1:37: model_prefix must be a text",
		"providers: [{name: p, wire: grpc}]":         "1:29: wire must be chat, responses, messages, or", "providers: [{name: p, wire: []}]": "1:29: wire must be",
		"providers: [{name: p, wire: [chat, messages]}]": "1:29: wire must be", "providers: [{name: p, wire: [chat, chat]}]": "1:36: wire must be",
		"providers: [{name: p, wires: chat}]": `1:23: a provider has no field "wires"; it has name, aliases, wire`, "providers: [{name: p, name: q}]": "1:23: duplicate field name",
		"providers: [{name: p, address: h/v1}]": "1:32: address must be an http or https address", "providers: [{name: p, address: 'http://u:p@h'}]": "1:32: address must be",
		"providers: [{name: p, address: 'http://h/?a=b'}]": "1:32: address must be", "providers: [{name: p, address: 'http://${H/v1'}]": "1:32: address must be",
		"providers: [{name: p, address: 'http://${H-1}/v1'}]": "1:32: address must be", "providers: [{name: p, address_variable: 1A}]": "1:41: address_variable must be the name of a variable",
		"providers: [{name: p, wire: messages, address: 'http://h/v1/'}]": "1:13: provider p has the wire messages: its address must not include",
		start + ", header: 'a b'}":                                        "2:55: header must be the name of a header", start + ", headers: [a]}": "2:56: headers must be a mapping",
		start + ", headers: {a: '${b'}}": "2:60: A has a variable that is not written as", start + ", headers: {a: x, A: y}}": "2:63: headers cannot set A",
		start + ", headers: {content-type: x}}": "2:57: headers cannot set Content-Type", start + ", headers: {a: \"x\\ny\"}}": "2:60: A must be a text of one line",
		start + ", header: api-key, headers: {Api-Key: x}}": "2:3: provider p has Api-Key in headers", start + ", key_variable: a-b}": "2:61: key_variable must be",
		start + ", token_command: []}": "2:62: token_command must be a program and its arguments", start + ", token_command: corp token}": "2:62: token_command must be a list",
		start + ", token_command: [[a]]}": "2:63: an element of token_command must be a text", start + ", images: 1}": "2:55: images must be true or false",
		start + ", effort: strong}": "2:55: effort must be reasoning_effort, reasoning, thinking or enable_thinking", start + ", reasoning: {back: sometimes}}": "2:65: back must be never, calls or always",
		start + ", reasoning: {blank: x, back: calls}}": "2:58: reasoning.blank needs field", start + ", reasoning: {blank: x, field: f}}": "2:58: reasoning.blank needs field",
		start + ", reasoning: {blank: [x]}}": "2:66: blank must be a text; it may be empty", start + ", body: [1]}": "2:53: body must be a mapping",
		start + ", body: {model: x}}": `2:54: body cannot set "model": the harness does`, start + ", body: {a: {1: b}}}": `2:57: body."a" cannot be written as JSON`,
		start + ", body: {a: .nan}}": `2:57: body."a" cannot be written as JSON`, start + ", body: {a: 1, a: 2}}": `2:60: duplicate field "a"`,
		start + ", model_prefix: x}": "2:3: provider p has a model_prefix and no models_of", start + ", models_of: nobody}": "2:3: provider p has the models of nobody, which is unknown: must be one of openai,",
		start + "}\n- {name: p, wire: chat, address: http://h}": "3:3: duplicate provider p", start + ", aliases: [p]}": "2:3: duplicate provider p",
		start + ", aliases: [openai]}": "2:3: openai is a name of the provider openai", start + ", aliases: [script]}": "2:57: an alias cannot be script",
		"providers: [{name: llama.cpp, wire: chat, address: http://h}]":               "1:13: llama.cpp is a name of the provider llamacpp: replace that one",
		"models: [{ref: 'anthropic:x', window: 1, wire: responses}]":                  "1:10: anthropic:x has the wire responses, which its provider does not have: it has messages",
		"models: [{ref: 'groq:x', window: 1, wire: responses}]":                       "it has chat",
		"models: [{ref: 'openai:x', window: 1, wire: messages}]":                      "1:45: wire must be chat or responses",
		"models: [{ref: 'openai:x', window: 1, efforts: [low, low]}]":                 "1:54: duplicate effort low",
		"models: [{ref: 'openai:x', window: 1, efforts: [ultra]}]":                    "1:49: an element of efforts must be none, minimal, low, medium, high, xhigh or max",
		"models: [{ref: 'openai:x', window: 1, thinking: hard}]":                      "1:49: thinking must be adaptive, budget or none",
		"models: [{ref: 'openai:x', window: 1, image_tokens: {}}]":                    "1:53: image_tokens has no patch",
		"models: [{ref: 'openai:x', window: 1, image_tokens: {patch: 28, each: -1}}]": "each must be a number of tokens from 0 to 1000000",
		"models: [{ref: 'openai:x', window: 1, token_factor: 0.99}]":                  "1:53: token_factor must be a number from 1 to 2.5",
		"models: [{ref: 'openai:x', window: 1, token_factor: 2.51}]":                  "token_factor must be a number from 1 to 2.5",
		"models: [{ref: 'openai:x', window: 1, token_factor: .nan}]":                  "token_factor must be a number from 1 to 2.5",
		"models: [{ref: 'openai:x', window: 1, token_factor: NaN}]":                   "token_factor must be a number from 1 to 2.5",
		"models: [{ref: 'openai:x', window: 1, token_factor: [1]}]":                   "token_factor must be a number from 1 to 2.5",
		"models: [{ref: 'openai:x', window: 1, token_factor: }]":                      "token_factor must be a number from 1 to 2.5",
	} {
		_, err := catalogue.Default().Extend("own.yaml", []byte(file))
		if err == nil || !place.MatchString(err.Error()) || strings.Contains(err.Error(), "\n") || !strings.Contains(err.Error(), says) {
			t.Errorf("%q: error %v, want one line with the place and %q", file, err, says)
		}
	}
}

func TestModelFields(t *testing.T) {
	e := extend(t, `models:
  - ref: openai:x
    window: 5
    wire: responses
    efforts: [low, max]
    thinking: budget
    always_on: true
    reads: [y, z]
    images: false
    pdf: true
    image_tokens: {patch: 32, max_side: 2, short_side: 3, max_patches: 4, each: 1.5, base: 6}
    token_factor: 2.5
  - {ref: "openai:y", window: 5, efforts: []}
`)
	no, yes := false, true
	want := catalogue.Entry{
		Window: 5, Known: true, Wire: catalogue.WireResponses, Efforts: []harnessv1.Effort{harnessv1.Effort_EFFORT_LOW, harnessv1.Effort_EFFORT_MAX},
		Thinking: catalogue.ThinkingBudget, AlwaysOn: true, Reads: []string{"y", "z"}, Images: &no, PDF: &yes,
		ImageTokens: catalogue.ImageTokens{Patch: 32, MaxSide: 2, ShortSide: 3, MaxPatches: 4, Each: 1.5, Base: 6}, TokenFactor: 2.5,
	}
	if got := e.Lookup("openai:x"); !reflect.DeepEqual(got, want) {
		t.Errorf("the entry is %+v, want %+v", got, want)
	}
	if got := e.Lookup("openai:y").Efforts; got == nil || len(got) != 0 {
		t.Errorf("the efforts are %v, want a list without any", got)
	}
}

// The embedded data, where the wires depend on them.
func TestEmbeddedModels(t *testing.T) {
	for ref, wire := range map[string]catalogue.Wire{
		"openai:gpt-4.1": "", "openai:o3": "", "openai:gpt-5": catalogue.WireResponses, "openai:gpt-5-codex": catalogue.WireResponses,
		"openai:gpt-5-pro": catalogue.WireResponses, "openai:gpt-5.2-pro": catalogue.WireResponses, "openai:gpt-5.4-pro-2026-03-05": catalogue.WireResponses,
		"openai:gpt-5.5-pro": catalogue.WireResponses, "openai:o1-pro": catalogue.WireResponses, "openai:o3-pro": catalogue.WireResponses,
		"openai:gpt-6.1-sol": catalogue.WireResponses, "azure:gpt-5": catalogue.WireResponses,
	} {
		if got := catalogue.Lookup(ref); got.Wire != wire || !got.Known {
			t.Errorf("%s has the wire %q, want %q", ref, got.Wire, wire)
		}
	}
	for ref, want := range map[string]struct {
		thinking catalogue.Thinking
		alwaysOn bool
		reads    int
	}{
		"anthropic:claude-haiku-4-5":        {catalogue.ThinkingBudget, false, 0},
		"anthropic:claude-opus-4-6":         {catalogue.ThinkingAdaptive, false, 0},
		"anthropic:claude-sonnet-5-5":       {catalogue.ThinkingAdaptive, false, 0},
		"anthropic:claude-opus-5-5":         {catalogue.ThinkingAdaptive, true, 5},
		"bedrock:anthropic.claude-opus-5-5": {catalogue.ThinkingAdaptive, true, 5},
		"anthropic:claude-fable-5-1":        {catalogue.ThinkingAdaptive, true, 1},
	} {
		if got := catalogue.Lookup(ref); got.Thinking != want.thinking || got.AlwaysOn != want.alwaysOn || len(got.Reads) != want.reads {
			t.Errorf("%s is %+v, want %+v", ref, got, want)
		}
	}
}

func TestOwns(t *testing.T) {
	c := extend(t, corp)
	for address, want := range map[string]bool{
		"https://api.openai.com/v1": true, "https://EU.api.OpenAI.com:443/v1/": true, "https://openai.com": true,
		"https://api.openai.com.example.com/v1": false, "https://notopenai.com/v1": false, "http://127.0.0.1:8000/v1": false, "::": false,
	} {
		if got := c.Provider("openai").Owns(address); got != want {
			t.Errorf("openai owns %s: %v, want %v", address, got, want)
		}
	}
	if ollama := c.Provider("ollama"); !ollama.Owns("http://127.0.0.1:11434/v1") || ollama.Owns("http://192.0.2.1:11434/v1") {
		t.Error("the host of the address is not the only own one")
	}
	if !c.Provider("corp").Owns("https://a.example.org") {
		t.Error("a domain of the file is not the provider's own")
	}
}

func TestExpand(t *testing.T) {
	env := strings.ToLower
	for text, want := range map[string]string{"": "", "a": "a", "${A}": "a", "x${A_1}y${B}": "xa_1yb", "$A{B}": "$A{B}"} {
		if got, err := catalogue.Expand(text, env); err != nil || got != want {
			t.Errorf("%q becomes %q (%v), want %q", text, got, err, want)
		}
	}
	for _, text := range []string{"${", "${}", "${A", "${A-B}", "${1}", "${A}${"} {
		if got, err := catalogue.Expand(text, env); err == nil {
			t.Errorf("%q becomes %q, want an error", text, got)
		}
	}
}
