package serve

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"google.golang.org/grpc"

	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/backend"
	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/console"
	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/daemon"
	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/exit"
	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/node"
	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/target"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// DaemonCmd are the verbs for the background process.
type DaemonCmd struct {
	Status  daemonStatusCmd  `cmd:"" help:"Show the background process and what it works on."`
	Stop    daemonStopCmd    `cmd:"" help:"Stop the background process; asks while runs work."`
	Restart daemonRestartCmd `cmd:"" help:"Replace the background process by one of this program, once no command runs; the runs at work continue."`
	Logs    daemonLogsCmd    `cmd:"" help:"Print the log of the background process."`
	Run     daemonRunCmd     `cmd:"" hidden:"" help:"Be the background process."`
}

// running connects to the background process of the default data directory; nil if none runs.
func running(ctx context.Context, a *console.Console) (dir string, h node.Holder, conn *grpc.ClientConn, err error) {
	if dir, err = backend.DefaultData(a.Env); err != nil {
		return "", h, nil, err
	}
	conn, held, err := node.Attach(ctx, dir)
	if err != nil || !held {
		return dir, h, nil, err
	}
	if h = node.HolderOf(dir); !h.Background {
		return dir, h, nil, errors.Join(fmt.Errorf("data directory %s is in use by process %d (%s), which is no background process: stop it where it runs", dir, h.PID, h.Command), conn.Close())
	}
	return dir, h, conn, nil
}

// daemonStatusCmd shows the background process.
type daemonStatusCmd struct{}

func (daemonStatusCmd) Run(ctx context.Context, a *console.Console) (int, error) {
	dir, _, conn, err := running(ctx, a)
	switch {
	case err != nil:
		return exit.Error, err
	case conn == nil:
		_, err := fmt.Fprintf(a.Out, "no background process uses %s\n", dir)
		return exit.Done, err
	}
	defer func() { _ = conn.Close() }()
	now, err := harnessv1.NewLocalServiceClient(conn).DescribeProcess(ctx, &harnessv1.DescribeProcessRequest{})
	if err != nil {
		return exit.Error, err
	}
	_, err = fmt.Fprintf(a.Out, "process  %d, since %s\nbuild    %s\ndata     %s\nlog      %s\nclients  %d\nmemory   %.1f MiB\nworking  %s\n",
		now.GetPid(), time.Since(now.GetStartTime().AsTime()).Round(time.Second), console.OneLine(now.GetBuild()), dir, daemon.LogFile(dir),
		max(now.GetClients(), 1)-1, float64(now.GetMemoryBytes())/(1<<20), namesOf(now.GetWorking()))
	if err == nil && now.GetNextWake() != nil {
		_, err = fmt.Fprintf(a.Out, "wakes    a run in %s\n", time.Until(now.GetNextWake().AsTime()).Round(time.Second))
	}
	if err != nil {
		return exit.Error, err
	}
	return exit.Done, nil
}

// namesOf returns the ids of runs.
func namesOf(runs []*harnessv1.LocalRun) string {
	names := make([]string, 0, len(runs))
	for _, run := range runs {
		name := run.GetRunId()
		if run.GetNamespace() != "default" {
			name = run.GetNamespace() + "/" + name
		}
		names = append(names, name)
	}
	return cmp.Or(strings.Join(names, ", "), "no run")
}

// daemonStopCmd stops the background process.
type daemonStopCmd struct {
	Now bool `help:"Interrupt the runs at work first, and do not ask."`
}

// endTime bounds the wait for the end of the process.
const endTime = daemon.DrainTime + 20*time.Second

func (c *daemonStopCmd) Run(ctx context.Context, a *console.Console) (int, error) {
	ctx, stop := a.CancelOnSignal(ctx)
	defer stop()
	dir, _, conn, err := running(ctx, a)
	switch {
	case err != nil:
		return exit.Error, err
	case conn == nil:
		a.Report("no background process uses %s", dir)
		return exit.Done, nil
	}
	defer func() { _ = conn.Close() }()
	local := harnessv1.NewLocalServiceClient(conn)
	now, err := local.DescribeProcess(ctx, &harnessv1.DescribeProcessRequest{})
	if err != nil {
		return exit.Error, err
	}
	if len(now.GetWorking()) > 0 && !c.Now {
		if err := confirmStop(ctx, a, now.GetWorking()); err != nil {
			return exit.Error, err
		}
	}
	if _, err := local.StopProcess(ctx, &harnessv1.StopProcessRequest{Interrupt: c.Now}); err != nil {
		return exit.Error, err
	}
	if err := awaitEnd(ctx, dir); err != nil {
		return exit.Error, err
	}
	a.Report("the background process %d has ended", now.GetPid())
	return exit.Done, nil
}

// confirmStop asks whether the process is to end although runs work.
func confirmStop(ctx context.Context, a *console.Console, working []*harnessv1.LocalRun) error {
	if !console.IsTerminal(a.In) || !console.IsTerminal(a.Err) {
		return fmt.Errorf("the background process works on %s: wait for them, or interrupt them with harness daemon stop --now", namesOf(working))
	}
	question := fmt.Sprintf("%s at work; what a run does gets %s to end, and harness resume continues the run.\nStop?", console.OneLine(namesOf(working)), daemon.DrainTime)
	yes, err := a.Confirm(ctx, bufio.NewReader(a.In), question)
	if err != nil {
		return err
	}
	if !yes {
		return errors.New("not stopped")
	}
	return nil
}

// awaitEnd waits for the end of the process.
func awaitEnd(ctx context.Context, dir string) error {
	ctx, cancel := context.WithTimeout(ctx, endTime)
	defer cancel()
	if err := backend.AwaitEnd(ctx, dir); err != nil {
		return fmt.Errorf("the background process has not ended within %s; its log is %s", endTime, daemon.LogFile(dir))
	}
	return nil
}

// daemonRestartCmd replaces the background process.
type daemonRestartCmd struct {
	Now bool `help:"Do not wait for commands: they have 30 s to end."`
}

func (c daemonRestartCmd) Run(ctx context.Context, a *console.Console) (int, error) {
	ctx, stop := a.CancelOnSignal(ctx)
	defer stop()
	dir, h, conn, err := running(ctx, a)
	if err != nil {
		return exit.Error, err
	}
	program := target.NewBackground(a).Program
	if program.Path == "" {
		return exit.Error, errors.New("the path of this program is not known")
	}
	if conn != nil {
		_ = conn.Close()
		program.Replace, program.Now = h.PID, c.Now
	}
	if err := daemon.Spawn(ctx, program); err != nil && !errors.Is(err, daemon.ErrHeld) {
		return exit.Error, err
	}
	now := node.HolderOf(dir)
	if conn == nil {
		a.Report("the background process %d has started", now.PID)
		return exit.Done, nil
	}
	a.Report("the background process %d (%s) replaces %d (%s)", now.PID, now.Build, h.PID, h.Build)
	return exit.Done, nil
}

// daemonLogsCmd prints the log.
type daemonLogsCmd struct{}

func (daemonLogsCmd) Run(_ context.Context, a *console.Console) (int, error) {
	dir, err := backend.DefaultData(a.Env)
	if err != nil {
		return exit.Error, err
	}
	found := false
	for _, path := range daemon.LogFiles(dir) {
		file, err := os.Open(path)
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			return exit.Error, err
		}
		found = true
		err = copyLines(a.Out, file)
		_ = file.Close()
		if err != nil {
			return exit.Error, err
		}
	}
	if !found {
		a.Report("there is no log in %s", dir)
	}
	return exit.Done, nil
}

// copyLines prints a log, of which agents may have written a part, safe for a terminal.
func copyLines(out io.Writer, in io.Reader) error {
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		if _, err := fmt.Fprintln(out, console.OneLine(lines.Text())); err != nil {
			return err
		}
	}
	return lines.Err()
}

// daemonRunCmd is the background process itself.
type daemonRunCmd struct {
	ReadyFD   int               `name:"ready-fd" hidden:"" help:"Descriptor that gets a line when clients can connect."`
	Replace   int               `hidden:"" help:"Process to take over from."`
	Now       bool              `hidden:"" help:"Take over although commands run."`
	Catalogue string            `hidden:"" help:"As in run."`
	Linger    *console.Duration `hidden:"" help:"How long the process stays after its last client has left. Default: 10m."`
}

func (c *daemonRunCmd) Run(ctx context.Context, a *console.Console) (int, error) {
	client := daemon.OpenPipe(c.ReadyFD)
	err := c.serve(ctx, a, client)
	if err != nil {
		client.Report(err)
	}
	if errors.Is(err, daemon.ErrHeld) {
		return exit.Done, nil
	}
	return exit.Error, err
}

func (c *daemonRunCmd) serve(ctx context.Context, a *console.Console, client *daemon.Pipe) error {
	cfg, err := c.config(a)
	if err != nil {
		return err
	}
	release := func() {}
	if c.Replace != 0 {
		successor := daemon.Successor{Dir: cfg.Data, Build: cfg.Build, Replace: c.Replace, Now: c.Now, Waits: client.Waits}
		waiting, stop := a.CancelOnSignal(ctx)
		handed, released, err := successor.TakeOver(waiting)
		stop()
		if err != nil {
			return err
		}
		release, cfg.Environments = released, handed.GetEnvironments()
		for _, run := range handed.GetWorking() {
			cfg.Keep = append(cfg.Keep, node.RunName(run.GetNamespace(), run.GetRunId()))
		}
	}
	defer release()
	cfg.Ready = func() {
		release()
		client.Report(nil)
	}
	return daemon.Serve(ctx, cfg)
}

func (c *daemonRunCmd) config(a *console.Console) (daemon.Config, error) {
	dir, err := backend.DefaultData(a.Env)
	if err != nil {
		return daemon.Config{}, err
	}
	a.Catalogue = c.Catalogue
	models, err := a.Models()
	if err != nil {
		return daemon.Config{}, err
	}
	cfg := daemon.Config{
		Data: dir, Build: a.Build(), Linger: daemon.DefaultLinger, Env: a.Env, Catalogue: models, Level: a.Level, Signals: a.Signals,
	}
	if file := cmp.Or(c.Catalogue, a.Env(console.EnvName("catalogue"))); file != "" {
		if cfg.CatalogueFile, err = filepath.Abs(file); err != nil {
			return daemon.Config{}, fmt.Errorf("--catalogue: %w", err)
		}
	}
	if c.Linger != nil {
		cfg.Linger = c.Linger.D
	}
	return cfg, nil
}
