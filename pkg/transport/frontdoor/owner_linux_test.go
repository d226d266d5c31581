package frontdoor

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/harnessmesh/harnessmesh/test/kit/waittest"
)

// opensConnections is the variable of a process that opens connections: COUNT ADDRESS.
const opensConnections = "FRONTDOOR_TEST_CONNECTIONS"

func TestMain(m *testing.M) {
	if job := os.Getenv(opensConnections); job != "" {
		count, address, _ := strings.Cut(job, " ")
		n, _ := strconv.Atoi(count)
		var all []net.Conn
		for range n {
			conn, err := net.Dial("tcp", address)
			if err != nil {
				fmt.Println(err)
				os.Exit(1)
			}
			all = append(all, conn)
		}
		fmt.Println("opened", len(all))
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// TestOwnerOfASocket at both families. A socket that its process has closed has no owner.
func TestOwnerOfASocket(t *testing.T) {
	t.Parallel()
	for _, address := range []string{"127.0.0.1:0", "[::1]:0"} {
		l, err := net.Listen("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = l.Close() }()
		client, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		server, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = server.Close() }()
		o, known := originOf(server)
		if want := (origin{user: uint64(os.Getuid()) + 1}); !known || o != want {
			t.Errorf("%s: got %v, %v, want %v", address, o, known, want)
		}
		if err := client.Close(); err != nil {
			t.Fatal(err)
		}
		if _, err := server.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
			t.Fatal(err)
		}
		if o, _ := originOf(server); o.user != 0 {
			t.Errorf("%s: a closed socket is of %v", address, o)
		}
	}
}

// TestSystemAnotherUserTakesNoPlaces: another user opens 1,500 connections that send nothing, of
// which as many as the limit stay open, and this user connects. It needs root, which starts
// a process of another user.
func TestSystemAnotherUserTakesNoPlaces(t *testing.T) {
	t.Parallel()
	const most, flood, otherUser = 1024, 1500, 65534
	if os.Getuid() != 0 {
		t.Skip("needs root to start a process of another user; TestOwnerOfASocket runs as every user")
	}
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	limited := Limit(inner, Limits{Peer: most}, slog.New(slog.NewTextHandler(&log, nil)))
	accepted := make(chan net.Conn, flood)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for {
			conn, err := limited.Accept()
			if err != nil {
				return
			}
			accepted <- conn
		}
	}()
	t.Cleanup(func() {
		_ = inner.Close()
		<-ended
	})
	other := exec.CommandContext(t.Context(), "/proc/self/exe")
	other.Env = []string{fmt.Sprintf("%s=%d %s", opensConnections, flood, inner.Addr())}
	other.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: otherUser, Gid: otherUser}}
	stdin, err := other.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := other.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := other.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = stdin.Close(); _ = other.Wait() }()
	line := make([]byte, 64)
	if n, err := stdout.Read(line); err != nil || !strings.HasPrefix(string(line[:n]), "opened 1500") {
		t.Fatalf("%q, %v", line[:n], err)
	}
	mine, err := net.Dial("tcp", inner.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = mine.Close() }()
	for open := 0; ; open++ {
		select {
		case conn := <-accepted:
			defer func() { _ = conn.Close() }()
			if conn.RemoteAddr().String() == mine.LocalAddr().String() {
				if open > most {
					t.Errorf("%d connections of the other user are open", open)
				}
				return
			}
		case <-time.After(waittest.Patience): // waits only if it fails
			t.Fatalf("this user's connection was not accepted; %d others were:\n%s", open, &log)
		}
	}
}

func BenchmarkOwnerOfASocket(b *testing.B) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	client, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = client.Close() }()
	server, err := l.Accept()
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = server.Close() }()
	b.ReportAllocs()
	for b.Loop() {
		if o, _ := originOf(server); o.user == 0 {
			b.Fatal("the user is not known")
		}
	}
}
