package access_test

import (
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/harnessmesh/harnessmesh/pkg/fault"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/transport/access"
	"github.com/harnessmesh/harnessmesh/test/kit/waittest"
)

const anotherForAll = "another-token-for-all-namespaces"

// checkQuota checks that a request is refused for a quota, whose number the message has, over each
// way, and that another token is not.
func checkQuota(t *testing.T, guard *access.Guard, quota, number string) {
	t.Helper()
	start := &harnessv1.StartRunRequest{Spec: spec(func(*harnessv1.RunSpec) {})}
	for way, err := range ways(t, guard, forAll, start) {
		info := fault.ReasonOf(err)
		if status.Code(err) != codes.ResourceExhausted || info != "QUOTA_EXCEEDED" || !strings.Contains(err.Error(), number) || !strings.Contains(err.Error(), quota+"= in its line") {
			t.Errorf("%s over %s: %v (%s)", quota, way, err, info)
		}
	}
	for way, err := range ways(t, guard, anotherForAll, start) {
		if status.Code(err) == codes.ResourceExhausted {
			t.Errorf("another token, over %s: %v", way, err)
		}
	}
}

// TestLinesOfANameShareItsStarts: a line with another number of starts has no others.
func TestLinesOfANameShareItsStarts(t *testing.T) {
	t.Parallel()
	file, _, _ := tokens(t, forAll+" name=a starts=1\n"+anotherForAll+" name=a starts=2\n")
	client := harnessv1.NewGatewayServiceClient(dial(t, access.NewGuard(file).ServerOptions()...))
	admitted := 0
	for range 3 {
		for _, token := range []string{forAll, anotherForAll} {
			_, err := client.StartRun(withToken(t, "Bearer "+token), &harnessv1.StartRunRequest{Spec: spec(func(*harnessv1.RunSpec) {})})
			if status.Code(err) != codes.ResourceExhausted {
				admitted++
			}
		}
	}
	if admitted != 1 {
		t.Errorf("%d starts were admitted, want 1", admitted)
	}
}

// TestQuotasOfAToken: of starts a minute.
func TestQuotasOfAToken(t *testing.T) {
	t.Parallel()
	open := func(attributes string) *access.Guard {
		file, _, _ := tokens(t, forAll+" name=a "+attributes+"\n"+anotherForAll+" name=b\n")
		return access.NewGuard(file)
	}
	within := open("starts=1")
	_, err := harnessv1.NewGatewayServiceClient(dial(t, within.ServerOptions()...)).
		StartRun(withToken(t, "Bearer "+forAll), &harnessv1.StartRunRequest{Spec: spec(func(*harnessv1.RunSpec) {})})
	if status.Code(err) != codes.Unimplemented { // the handler has it
		t.Errorf("the first start: %v", err)
	}
	checkQuota(t, within, "starts", "1 runs a minute")
	_, err = harnessv1.NewGatewayServiceClient(dial(t, within.ServerOptions()...)).
		StartRun(withToken(t, "Bearer "+forAll), &harnessv1.StartRunRequest{Spec: spec(func(*harnessv1.RunSpec) {})})
	if wait, _ := strconv.Atoi(fault.Metadata(err, "retry_after")); wait < 1 || wait > 60 {
		t.Errorf("the next start is in %d s: %v", wait, err)
	}
}

// TestOpenStreamsOfATokenAreBounded, with its HTTP requests; one that ends makes room.
func TestOpenStreamsOfATokenAreBounded(t *testing.T) {
	t.Parallel()
	file, _, _ := tokens(t, forAll+" watchers=2\n"+anotherForAll+"\n")
	guard := access.NewGuard(file)
	client := harnessv1.NewGatewayServiceClient(dial(t, guard.ServerOptions()...))
	inside, leave := make(chan struct{}), make(chan struct{})
	server := httptest.NewServer(guard.HTTP(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			return
		}
		inside <- struct{}{}
		<-leave
	}), func(w http.ResponseWriter, err error) { http.Error(w, err.Error(), http.StatusTooManyRequests) }))
	defer server.Close()
	send := func(method, path, token string) <-chan int {
		answered := make(chan int, 1)
		go func() {
			r, _ := http.NewRequestWithContext(t.Context(), method, server.URL+path, nil)
			r.Header.Set("Authorization", "Bearer "+token)
			response, err := http.DefaultClient.Do(r)
			if err != nil {
				answered <- 0
				return
			}
			_ = response.Body.Close()
			answered <- response.StatusCode
		}()
		return answered
	}
	get := func(token string) <-chan int { return send(http.MethodGet, "/", token) }
	first, second := get(forAll), get(forAll)
	<-inside
	<-inside
	if got := <-get(forAll); got != http.StatusTooManyRequests {
		t.Errorf("a third request: %d", got)
	}
	for _, path := range []string{"/v1/runs/r/cancel", "/v1/runs/r/interrupt"} { // these end what takes the places
		if got := <-send(http.MethodPost, path, forAll); got != http.StatusOK {
			t.Errorf("%s: %d", path, got)
		}
	}
	if got := <-send(http.MethodPost, "/v1/runs/r/resume", forAll); got != http.StatusTooManyRequests {
		t.Errorf("another request: %d", got)
	}
	stream, err := client.Run(withToken(t, "Bearer "+forAll))
	if err == nil {
		_, err = stream.Recv()
	}
	if status.Code(err) != codes.ResourceExhausted {
		t.Errorf("a stream next to two requests: %v", err)
	}
	other := get(anotherForAll)
	<-inside
	for range 3 {
		leave <- struct{}{}
	}
	for _, answered := range []<-chan int{first, second, other} {
		if got := <-answered; got != http.StatusOK {
			t.Errorf("got %d", got)
		}
	}
	go func() { // for the next request that is admitted
		<-inside
		leave <- struct{}{}
	}()
	waittest.Eventually(t, "an ended request makes room", func() bool { return <-get(forAll) == http.StatusOK })
}
