package toolhost

import (
	"slices"
	"testing"
)

func TestCommandEnvironment(t *testing.T) {
	got := CommandEnvironment([]string{
		"PATH=/bin", "HOME=/root", "PAGER=less", "broken",
		"OPENAI_API_KEY=1", "github_token=2", "MY_SECRET_X=3", "PGPASSWORD=4", "HARNESS_DATA=5", "AWS_CREDENTIALS=6",
		"DATABASE_URL=postgres://u:p@host/db", "PROXY=http://proxy:3128", "ODD=http://%zz@x",
		"CACHE_KEY=wanted",
	}, []string{"CACHE_KEY"})
	want := []string{"PATH=/bin", "HOME=/root", "PROXY=http://proxy:3128", "CACHE_KEY=wanted",
		"TERM=dumb", "PAGER=cat", "GIT_PAGER=cat", "GIT_TERMINAL_PROMPT=0"}
	if !slices.Equal(got, want) {
		t.Fatalf("got %v", got)
	}
}
