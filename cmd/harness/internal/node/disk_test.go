package node

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/test/kit/disktest"
	"github.com/harnessmesh/harnessmesh/test/kit/waittest"
)

// TestFullDiskOfOneProcess fills the disk of a process with an embedded server, where the
// ledger of its tool host is too, while a run is at work. The process reports it and a
// message is refused with the reason. Once there is room, the run ends, without a
// restart.
func TestFullDiskOfOneProcess(t *testing.T) {
	disk, dir := disktest.New(t), t.TempDir()
	script := filepath.Join(dir, "script.yaml")
	text := `turns:
  - {text: "One.", calls: [{name: run_command, arguments: {command: 'echo one >> out; until [ -e go ]; do sleep 0.02; done'}}]}
  - {text: "Two.", calls: [{name: run_command, arguments: {command: 'echo two >> out'}}]}
  - {calls: [{name: work_complete, arguments: {summary: done}}]}
`
	if err := os.WriteFile(script, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	out, notices := &output{}, &output{}
	n, err := Start(t.Context(), Config{
		Data: filepath.Join(disk.Dir, "data"), Stderr: out,
		Notice: func(text string) { _, _ = notices.Write([]byte(text + "\n")) },
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = n.Stop(t.Context()) })
	client := n.Client()
	_, err = client.StartRun(t.Context(), &harnessv1.StartRunRequest{RunId: "r", Spec: &harnessv1.RunSpec{
		Goal: content.Inline("Do it."), Agent: &harnessv1.AgentSpec{Model: "script:" + script}, Workspace: dir,
		Config: &harnessv1.LoopConfig{Tools: &harnessv1.ToolConfig{Yolo: proto.Bool(true)}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	lines := func() string {
		all, _ := os.ReadFile(filepath.Join(dir, "out")) // none before the first line
		return string(all)
	}
	waittest.Eventually(t, "the command runs", func() bool { return lines() != "" })
	disk.Fill()
	send := func(i int) error {
		_, err := client.SendInput(t.Context(), &harnessv1.SendInputRequest{RunId: "r", RequestId: fmt.Sprint("m", i), Input: &harnessv1.SendInputRequest_UserMessage{
			UserMessage: &harnessv1.UserMessage{Content: content.Inline(strings.Repeat("Are you there? ", 5000))},
		}})
		return err
	}
	i := 0
	waittest.Eventually(t, "a message is refused with the reason", func() bool {
		i++
		err := send(i)
		return err != nil && strings.Contains(err.Error(), "NATS stores nothing since ") && strings.Contains(err.Error(), "work continues by itself once there is room")
	})
	waittest.Eventually(t, "every role reports it", func() bool {
		return strings.Count(out.String(), `reason="NATS stores nothing since `) >= len(n.cfg.Roles)
	})
	if err := os.WriteFile(filepath.Join(dir, "go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	disk.Free()
	waittest.Eventually(t, "the run ends", func() bool {
		r, err := client.GetRun(t.Context(), &harnessv1.GetRunRequest{RunId: "r"})
		return err == nil && r.GetRun().GetStatus() == harnessv1.RunStatus_RUN_STATUS_DONE
	})
	if lines() != "one\ntwo\n" {
		t.Errorf("the commands have written %q", lines())
	}
}
