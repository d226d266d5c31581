package toolhost

import (
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// Names of the tools.
const (
	ReadFile      = "read_file"
	WriteFile     = "write_file"
	EditFile      = "edit_file"
	ListDirectory = "list_directory"
	FindFiles     = "find_files"
	SearchFiles   = "search_files"
	RunCommand    = "run_command"
)

// Catalogue is the tools of a host, new at each call, in the order in which the
// model is to see them.
func Catalogue() []*harnessv1.ToolSpec {
	return []*harnessv1.ToolSpec{
		{
			Name:   ReadFile,
			Origin: harnessv1.ToolOrigin_TOOL_ORIGIN_TOOL_HOST,
			Description: "Read a text file of the workspace. Without offset and limit you get the file from its first line, " +
				"up to a size limit; a note at the end says when the file goes on and which offset to continue with. " +
				"Use it rather than cat or sed. Read several files with several calls in one response.",
			ParametersSchema: `{"type":"object","properties":{` +
				`"path":{"type":"string","minLength":1,"description":"Path of the file, relative to the workspace."},` +
				`"offset":{"type":"integer","minimum":1,"maximum":1000000000,"description":"First line to return, counted from 1. Default 1."},` +
				`"limit":{"type":"integer","minimum":1,"maximum":1000000000,"description":"Number of lines to return. Default: all, up to the size limit."}},` +
				`"required":["path"],"additionalProperties":false}`,
			Usage: "Read a file before you change it, and the part around a match before you rely on it. Ask for several files " +
				"with several calls in one response.",
			Annotations: &harnessv1.ToolAnnotations{
				Reads: true, Idempotent: true, ParallelSafe: true,
				Durability: harnessv1.Durability_DURABILITY_REPLAYABLE,
			},
		},
		{
			Name:   WriteFile,
			Origin: harnessv1.ToolOrigin_TOOL_ORIGIN_TOOL_HOST,
			Description: "Create a file with the given content, or replace all of an existing one. Missing parent folders are created. " +
				"To change a part of a file use edit_file.",
			ParametersSchema: `{"type":"object","properties":{` +
				`"path":{"type":"string","minLength":1,"description":"Path of the file, relative to the workspace."},` +
				`"content":{"type":"string","description":"The whole new content."}},` +
				`"required":["path","content"],"additionalProperties":false}`,
			Usage: "For new files, and for files of which little stays. To change a part of a file use edit_file, which cannot " +
				"lose the rest.",
			Annotations: &harnessv1.ToolAnnotations{
				Writes: true, Idempotent: true,
				Durability:      harnessv1.Durability_DURABILITY_ANCHORING,
				PreservedFields: []string{"path", "success"},
			},
		},
		{
			Name:   EditFile,
			Origin: harnessv1.ToolOrigin_TOOL_ORIGIN_TOOL_HOST,
			Description: "Replace one piece of text in a file. old has to occur exactly once in the file, character for character, " +
				"with its indentation and line breaks; include enough of the lines around it to make it unique. " +
				"Read the file first. An empty new deletes the text.",
			ParametersSchema: `{"type":"object","properties":{` +
				`"path":{"type":"string","minLength":1,"description":"Path of the file, relative to the workspace."},` +
				`"old":{"type":"string","minLength":1,"description":"The text to replace, exactly as it stands in the file."},` +
				`"new":{"type":"string","description":"The text to put in its place."}},` +
				`"required":["path","old","new"],"additionalProperties":false}`,
			Usage: "For changes to existing files, rather than write_file or sed. When old is not found, read the file again and " +
				"copy the text exactly; when it occurs more than once, add lines around it.",
			Annotations: &harnessv1.ToolAnnotations{
				Writes:          true,
				Durability:      harnessv1.Durability_DURABILITY_ANCHORING,
				PreservedFields: []string{"path", "success"},
			},
		},
		{
			Name:   ListDirectory,
			Origin: harnessv1.ToolOrigin_TOOL_ORIGIN_TOOL_HOST,
			Description: "List what is in one folder: a name a line, folders with a slash at the end, files with their size in bytes. " +
				"To look through folders below it use find_files.",
			ParametersSchema: `{"type":"object","properties":{` +
				`"path":{"type":"string","minLength":1,"description":"Path of the folder, relative to the workspace. Default: the workspace itself."}},` +
				`"required":[],"additionalProperties":false}`,
			Usage: "For a first look at one folder. When you know what you look for, find_files or search_files gets there in one " +
				"call.",
			Annotations: explores(),
		},
		{
			Name:   FindFiles,
			Origin: harnessv1.ToolOrigin_TOOL_ORIGIN_TOOL_HOST,
			Description: "Find files by name in the whole workspace. The pattern knows * and ? within a name, ** for any number of folders, " +
				"[a-z], and {a,b} for alternatives, as in src/**/*.{ts,tsx}. A pattern without a slash is looked for in every folder. " +
				"Returns paths, sorted. The .git folder is left out.",
			ParametersSchema: `{"type":"object","properties":{` +
				`"pattern":{"type":"string","minLength":1,"maxLength":1000,"description":"Pattern for the path relative to the workspace."}},` +
				`"required":["pattern"],"additionalProperties":false}`,
			Usage: "When you know a part of a file's name or path. Use it rather than find or ls -R; to look for text inside " +
				"files use search_files.",
			Annotations: explores(),
		},
		{
			Name:   SearchFiles,
			Origin: harnessv1.ToolOrigin_TOOL_ORIGIN_TOOL_HOST,
			Description: "Search the contents of files for a regular expression (RE2 syntax, one line at a time; (?i) ignores case). " +
				"Returns matching lines as path:line: text. Binary files, very large files and the .git folder are left out. " +
				"Use it rather than grep.",
			ParametersSchema: `{"type":"object","properties":{` +
				`"pattern":{"type":"string","minLength":1,"maxLength":1000,"description":"The regular expression."},` +
				`"path":{"type":"string","minLength":1,"description":"File or folder to search, relative to the workspace. Default: the whole workspace."}},` +
				`"required":["pattern"],"additionalProperties":false}`,
			Usage: "To find where something is defined or used. Use it rather than grep, narrow it with path when there are many " +
				"matches, and read the files that it names before you change them.",
			Annotations: explores(),
		},
		{
			Name:   RunCommand,
			Origin: harnessv1.ToolOrigin_TOOL_ORIGIN_TOOL_HOST,
			Description: "Run a command with sh -c in the workspace and return what it prints, standard output and error together, and its exit code. " +
				"It gets no input, so use flags that make programs ask nothing. Each call is a new shell: cd and variables do not last. " +
				"When the shell ends, everything that it started is killed, background processes too. " +
				"Of long output the middle is left out; write it to a file and read that when you need all of it.",
			ParametersSchema: `{"type":"object","properties":{` +
				`"command":{"type":"string","minLength":1,"description":"The command line."},` +
				`"timeout_seconds":{"type":"integer","minimum":1,"maximum":86400,"description":"Time after which it is killed. Set it for builds and tests that take long."}},` +
				`"required":["command"],"additionalProperties":false}`,
			Usage: "To build, test, run programs and work with version control. Not to read, write, find or search files: the " +
				"tools for that are quicker and safer. After changes run the tests or the build that show whether they work.",
			Annotations: &harnessv1.ToolAnnotations{
				Writes: true, Executes: true,
				Durability:      harnessv1.Durability_DURABILITY_ANCHORING,
				PreservedFields: []string{"exit_code", "command"},
			},
		},
	}
}

// explores annotates a tool that looks around.
func explores() *harnessv1.ToolAnnotations {
	return &harnessv1.ToolAnnotations{
		Explores: true, Idempotent: true, ParallelSafe: true,
		Durability: harnessv1.Durability_DURABILITY_EPHEMERAL,
	}
}
