package servertest

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Variables of a server with the tools of a real one.
const (
	// Real is the folder with the data of real servers, see RealData.
	Real = "REAL"
	// RealServer is the server whose tools it has, as RealTool names it.
	RealServer = "REAL_SERVER"
)

// RealData returns the folder with the data of real servers. dialect is the path of pkg/tool/dialect.
func RealData(dialect string) string { return filepath.Join(dialect, "testdata") }

// RealTool is a tool of a real server.
type RealTool struct {
	Server, Name string
	Schema       json.RawMessage
}

// FullName returns the name that the tool has in a run.
func (r RealTool) FullName() string { return "mcp__" + r.Server + "__" + r.Name }

// RealTask is a sentence as a person or a model writes it, and the full name of the tool that it means.
type RealTask struct{ Task, Tool string }

// short removes the parts of the names of npm packages that are not the product.
var short = regexp.MustCompile(`^@|/mcp$|server-|mcp-|-mcp|-server|modelcontextprotocol/|notionhq/|zereight/|brave/|upstash/`)

// RealTools returns the tools of real servers in a folder, in the order of its file. Of two with one
// name it has the first.
func RealTools(folder string) (tools []RealTool, err error) {
	seen := map[string]bool{}
	err = readLines(filepath.Join(folder, "schemas.jsonl"), func(r RealTool) {
		if server := r.Server; server == "@hubspot/mcp-server" {
			r.Server = "hubspot"
		} else {
			r.Server = strings.ReplaceAll(strings.Trim(short.ReplaceAllString(server, ""), "-/@"), "/", "-")
		}
		if !seen[r.FullName()] {
			seen[r.FullName()] = true
			tools = append(tools, r)
		}
	})
	return tools, err
}

// RealTasks returns the sentences in a folder.
func RealTasks(folder string) (tasks []RealTask, err error) {
	err = readLines(filepath.Join(folder, "tasks.jsonl"), func(r RealTask) { tasks = append(tasks, r) })
	return tasks, err
}

// readLines reads a file with a JSON value in each line.
func readLines[T any](file string, take func(T)) error {
	data, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	for line := range strings.Lines(string(data)) {
		var value T
		if err := json.Unmarshal([]byte(line), &value); err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		take(value)
	}
	return nil
}

// addReal adds the tools of a real server. They do nothing, and return their names.
func addReal(s *mcp.Server, folder, server string) error {
	tools, err := RealTools(folder)
	if err != nil {
		return err
	}
	for _, r := range tools {
		if r.Server == server {
			s.AddTool(&mcp.Tool{Name: r.Name, InputSchema: r.Schema}, func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
				return text("done by %s", r.Name), nil
			})
		}
	}
	return nil
}
