package mcpclient

import "testing"

// TestTheLineThatTellsMost: a crash is explained by its error, whatever a runtime writes after it.
func TestTheLineThatTellsMost(t *testing.T) {
	t.Parallel()
	for written, want := range map[string]string{
		"npx\r1/2\rError: gone\r\n":        "Error: gone",
		"":                                 "",
		"starting\nno such file: x\n\n":    "no such file: x",
		"Error: old\nlistening on stdio\n": "listening on stdio",
		"node:internal:1\n  throw err;\n\nError [ERR_MODULE_NOT_FOUND]: Cannot find module '/x.js'\n    at require (node:1)\n  code: 'E'\n}\n\nNode.js v20.20.2\n": "Error [ERR_MODULE_NOT_FOUND]: Cannot find module '/x.js'",
		"Traceback (most recent call last):\n  File \"x.py\", line 1\nModuleNotFoundError: No module named 'y'\n":                                                  "ModuleNotFoundError: No module named 'y'",
	} {
		var end tail
		_, _ = end.Write([]byte(written))
		if got := end.last(); got != want {
			t.Errorf("%q: %q, want %q", written, got, want)
		}
	}
}
