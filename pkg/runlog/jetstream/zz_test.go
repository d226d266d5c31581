package jetstream
import ("testing";"time")
func TestZZ(t *testing.T) {
	b := time.Now()
	c := startCluster(t, "a","b","c")
	t.Log("start", time.Since(b))
	for _, a := range []string{"a","b","c"} {
		b = time.Now()
		c.provision(t, a, Layout{})
		t.Log("provision", time.Since(b))
	}
	b = time.Now()
	l := c.open(t, "a", c, 0)
	t.Log("open", time.Since(b))
	rec := first("r")
	b = time.Now()
	for i := range 500 {
		s, err := l.Append(t.Context(), rec)
		if err != nil { t.Fatal(err) }
		rec = after(rec, s, uint64(i)+2)
		if i %100 == 50 {
			ld := c.leader("a", "RUNS_0")
			b := time.Now()
			if err := ld.running().JetStreamStepdownStream("a","RUNS_0"); err != nil { t.Fatal(err) }
			c.awaitLeader(t, "a","RUNS_0", ld)
			t.Log("leader", time.Since(b))
		}
	}
	t.Log("500 appends", time.Since(b))
	t.Logf("%+v", &l.counts)
	b = time.Now()
	for _, s := range []string{"RUNS_0","BLOBS_0","TIMERS_0"} {
		st, err := l.js.Stream(t.Context(), s)
		if err != nil { t.Fatal(err) }
		if err := st.Purge(t.Context()); err != nil {t.Fatal(err)}
	}
	t.Log("purge", time.Since(b))
	b = time.Now()
	for _, s := range []string{"RUNS_0","BLOBS_0","TIMERS_0"} {
		if err := l.js.DeleteStream(t.Context(), s); err != nil {t.Fatal(err)}
	}
	t.Log("delete", time.Since(b))
	b = time.Now()
	t.Cleanup(func() { t.Log("stop", time.Since(b)) })
}
