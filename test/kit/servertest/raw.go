package servertest

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
)

// Raw is the variable that makes the server one that breaks the protocol, in one of the ways below.
const Raw = "RAW"

// Ways in which a raw server breaks the protocol. Each has the tool speak, which returns "spoken",
// unless another tool is named.
const (
	// RawSilent never answers.
	RawSilent = "silent"
	// RawEndless writes a line without an end.
	RawEndless = "endless"
	// RawEarly reports that its tools have changed before each of its answers.
	RawEarly = "early"
	// RawTwice answers each call twice, the second time with "again".
	RawTwice = "twice"
	// RawOther answers each call under another id, then under its own.
	RawOther = "other"
	// RawLost answers each call under another id only.
	RawLost = "lost"
	// RawHung appends "hanging" to the file at each call, and never answers it.
	RawHung = "hung"
	// RawDeaf does the same, and reads nothing after the call.
	RawDeaf = "deaf"
	// RawMany lists 10,000 tools more.
	RawMany = "many"
	// RawPages lists tools without a last page.
	RawPages = "pages"
	// RawBytes answers calls with invalid UTF-8.
	RawBytes = "bytes"
	// RawImage answers calls with an image of 200 MB.
	RawImage = "image"
	// RawLate answers calls with a text of 17 MiB, after which it writes the id.
	RawLate = "late"
	// RawError answers calls with an error of 17 MiB.
	RawError = "error"
	// RawSame lists two tools of one name.
	RawSame = "same"
	// RawNamed has a tool work_complete.
	RawNamed = "named"
	// RawMuddled answers calls with content that is none.
	RawMuddled = "muddled"
	// RawText, RawList, RawNull and RawNumber answer calls with a result that is no object.
	RawText, RawList, RawNull, RawNumber = "text", "list", "null", "number"
	// RawRefusal and RawFaults answer calls with an error that is no object.
	RawRefusal, RawFaults = "refusal", "faults"
	// RawUnnamed answers calls with an error without an id, then under their own id.
	RawUnnamed = "unnamed"
	// RawDefinition lists a tool whose definition is broken, and one without a name.
	RawDefinition = "definition"
	// RawFlood answers no call, and reports other tools without end.
	RawFlood = "flood"
)

// flood reports other tools until nothing reads it any more.
func flood(out io.Writer) {
	for {
		if _, err := io.WriteString(out, `{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`+"\n"); err != nil {
			return
		}
	}
}

// raw serves the protocol by hand, until standard input ends.
func raw(how string, in io.Reader, out io.Writer) {
	w := bufio.NewWriter(out)
	answer := func(id, result string) {
		if how == RawEarly {
			_, _ = w.WriteString(`{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}` + "\n")
		}
		_, _ = fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,%s}`+"\n", id, result)
		_ = w.Flush()
	}
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var m struct {
			ID     json.RawMessage
			Method string
			Params struct{ Cursor string }
		}
		if json.Unmarshal(lines.Bytes(), &m) != nil || len(m.ID) == 0 || how == RawSilent {
			continue
		}
		id := string(m.ID)
		switch {
		case how == RawEndless:
			_, _ = io.Copy(w, zeros{})
			return
		case m.Method == "initialize":
			answer(id, `"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{"listChanged":true}},"serverInfo":{"name":"raw","version":"1"}}`)
		case m.Method == "tools/list":
			answer(id, `"result":`+rawTools(how, m.Params.Cursor))
		case m.Method != "tools/call":
			answer(id, `"error":{"code":-32601,"message":"method not found"}`)
		case how == RawFlood:
			flood(out)
			return
		case how == RawImage:
			_, _ = fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":{"content":[{"type":"image","mimeType":"image/png","data":"`, id)
			_, _ = io.CopyN(w, letters{}, 267<<20) // of 200 MB in base64
			_, _ = w.WriteString(`"}]}}` + "\n")
			_ = w.Flush()
		default:
			rawCall(how, id, answer, func(head, tail string) {
				_, _ = w.WriteString(head + strings.Repeat("A", 17<<20) + tail + "\n")
				_ = w.Flush()
			})
		}
	}
}

// rawCall answers a call; large writes a message with 17 MiB in its middle.
func rawCall(how, id string, answer func(id, result string), large func(head, tail string)) {
	text := func(text string) string { return `"result":{"content":[{"type":"text","text":"` + text + `"}]}` }
	if how == RawOther || how == RawLost {
		answer("987654321", text("another call"))
		answer(`"none"`, text("another call"))
	}
	switch how {
	case RawLost:
	case RawHung, RawDeaf:
		if err := appendLine(os.Getenv(Lines), "hanging"); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		if how == RawDeaf {
			select {}
		}
	case RawBytes:
		answer(id, text("spoken \xff\xfe"))
	case RawLate:
		large(`{"result":{"content":[{"type":"text","text":"`, `"}]},"jsonrpc":"2.0","id":`+id+"}")
	case RawError:
		large(`{"jsonrpc":"2.0","id":`+id+`,"error":{"code":-32000,"message":"`, `"}}`)
	case RawMuddled:
		answer(id, `"result":{"content":[{"type":"hologram"},7]}`)
	case RawText, RawList, RawNull, RawNumber:
		answer(id, `"result":`+map[string]string{RawText: `"spoken"`, RawList: "[]", RawNull: "null", RawNumber: "7"}[how])
	case RawRefusal, RawFaults:
		answer(id, `"error":`+map[string]string{RawRefusal: `"no disk"`, RawFaults: `["no disk"]`}[how])
	default:
		if how == RawUnnamed {
			answer("null", `"error":{"code":-32600,"message":"no such call"}`)
		}
		answer(id, text("spoken"))
	}
	if how == RawTwice {
		answer(id, text("again"))
	}
}

// rawTools returns a page of tools.
func rawTools(how, cursor string) string {
	tool := func(name string) string { return `{"name":"` + name + `","inputSchema":{"type":"object"}}` }
	list := []string{tool("speak")}
	switch how {
	case RawMany:
		for i := range 10000 {
			list = append(list, tool(fmt.Sprintf("tool_%05d", i)))
		}
	case RawPages:
		page, _ := strconv.Atoi(cursor)
		if page > 0 {
			list[0] = tool(fmt.Sprintf("page_%05d", page))
		}
		return fmt.Sprintf(`{"tools":[%s],"nextCursor":"%d"}`, list[0], page+1)
	case RawSame:
		list = append(list, list[0])
	case RawDefinition:
		list = append(list, `{"name":"odd","title":7,"inputSchema":{"type":"object"}}`, `{"title":"nameless"}`, "8")
	case RawNamed:
		list = append(list, tool("work_complete"))
	}
	return `{"tools":[` + strings.Join(list, ",") + `]}`
}

type zeros struct{}

// Read fills p with zeros.
func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

type letters struct{}

// Read fills p with the letter A.
func (letters) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = 'A'
	}
	return len(p), nil
}

// enterRaw serves on standard input and output, if the environment has a way for it.
func enterRaw() {
	if how := os.Getenv(Raw); how != "" {
		raw(how, os.Stdin, os.Stdout)
		os.Exit(0)
	}
}
