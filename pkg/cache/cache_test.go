package cache_test

import (
	"container/list"
	"fmt"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"github.com/harnessmesh/harnessmesh/pkg/cache"
)

// model is the cache as a list of its values, the newest use first.
type model struct {
	limit  int
	values []entry
}

type entry struct{ key, value, size int }

func (m *model) find(key int) int {
	for i, e := range m.values {
		if e.key == key {
			return i
		}
	}
	return -1
}

func (m *model) take(i int) entry {
	e := m.values[i]
	m.values = append(m.values[:i:i], m.values[i+1:]...)
	return e
}

func (m *model) used() (n int) {
	for _, e := range m.values {
		n += e.size
	}
	return n
}

func (m *model) put(e entry, replace bool) {
	if i := m.find(e.key); i >= 0 {
		if !replace {
			return
		}
		m.take(i)
	}
	m.values = append([]entry{e}, m.values...)
	for m.used() > m.limit && len(m.values) > 1 {
		m.take(len(m.values) - 1)
	}
}

// TestCacheIsItsModel does random operations with a cache and with its model.
func TestCacheIsItsModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limit := rapid.IntRange(0, 40).Draw(t, "limit")
		c, m := cache.New[int, int](limit), &model{limit: limit}
		for n := range rapid.IntRange(1, 60).Draw(t, "operations") {
			key, size := rapid.IntRange(0, 9).Draw(t, "key"), rapid.IntRange(0, 15).Draw(t, "size")
			switch op := rapid.SampledFrom([]string{"get", "add", "put", "replace", "take", "take all"}).Draw(t, "op"); op {
			case "add":
				c.Add(key, n, size)
				m.put(entry{key, n, size}, false)
			case "put":
				c.Put(key, n, size)
				m.put(entry{key, n, size}, true)
			case "replace":
				i, even := m.find(key), func(old int) bool { return old%2 == 0 }
				c.Replace(key, n, size, even)
				m.put(entry{key, n, size}, i >= 0 && even(m.values[i].value))
			case "take all":
				above := func(k int) bool { return k > key }
				c.TakeAll(above)
				for i := len(m.values) - 1; i >= 0; i-- {
					if above(m.values[i].key) {
						m.take(i)
					}
				}
			default:
				got, ok := c.Get(key)
				want := entry{}
				i := m.find(key)
				if i >= 0 {
					want = m.take(i)
				}
				if op == "take" {
					got, ok = c.Take(key)
				} else if i >= 0 {
					m.values = append([]entry{want}, m.values...)
				}
				if ok != (i >= 0) || got != want.value {
					t.Fatalf("%s %d: %d, %t; want %v", op, key, got, ok, want)
				}
			}
			if c.Used() != m.used() {
				t.Fatalf("%d bytes are used, want %d", c.Used(), m.used())
			}
		}
		for key := range 10 {
			if _, ok := c.Get(key); ok != (m.find(key) >= 0) {
				t.Fatalf("%d is kept: %t", key, ok)
			}
		}
	})
}

// TestZeroValueKeepsTheNewest: a cache without a limit has room for one value.
func TestZeroValueKeepsTheNewest(t *testing.T) {
	var c cache.Cache[string, int]
	if _, ok := c.Get("a"); ok || c.Limit() != 0 {
		t.Error("an empty cache has a value, or a limit")
	}
	c.TakeAll(func(string) bool { return true })
	c.Add("a", 1, 10)
	c.Add("b", 2, 10)
	if _, ok := c.Get("a"); ok {
		t.Error("the older one of two values is kept without a limit")
	}
	if v, ok := c.Take("b"); !ok || v != 2 || c.Used() != 0 {
		t.Errorf("the newest value: %d, %t; %d bytes used", v, ok, c.Used())
	}
}

// TestConcurrentUse is for the race detector.
func TestConcurrentUse(t *testing.T) {
	c := cache.New[int, int](100)
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			for i := range 1000 {
				key := (g*7 + i) % 31
				c.Add(key, i, 10)
				c.Get(key)
				if i%5 == 0 {
					c.Take(key)
				}
			}
		})
	}
	wg.Wait()
	used := c.Used()
	for key := range 31 {
		if _, ok := c.Take(key); ok {
			used -= 10
		}
	}
	if c.Used() != 0 || used != 0 {
		t.Errorf("%d bytes without values, %d bytes of no value", c.Used(), used)
	}
}

// BenchmarkCache compares a use of a full cache with one of container/list and a map, which is
// its floor.
func BenchmarkCache(b *testing.B) {
	type at struct {
		partition int
		sequence  uint64
	}
	const n = 1000
	for _, of := range []string{"get", "add"} {
		b.Run(of, func(b *testing.B) {
			b.ReportAllocs()
			c := cache.New[at, string](n * 100)
			for i := range n {
				c.Add(at{1, uint64(i)}, "x", 100)
			}
			for i := 0; b.Loop(); i++ {
				if of == "get" {
					c.Get(at{1, uint64(i % n)})
				} else {
					c.Add(at{1, uint64(n + i)}, "x", 100)
				}
			}
		})
		b.Run(fmt.Sprintf("%s/floor", of), func(b *testing.B) {
			b.ReportAllocs()
			type value struct {
				key  at
				text string
			}
			var mu sync.Mutex
			order, byKey := list.New(), map[at]*list.Element{}
			for i := range n {
				byKey[at{1, uint64(i)}] = order.PushFront(&value{at{1, uint64(i)}, "x"})
			}
			for i := 0; b.Loop(); i++ {
				mu.Lock()
				if of == "get" {
					order.MoveToFront(byKey[at{1, uint64(i % n)}])
				} else {
					byKey[at{1, uint64(n + i)}] = order.PushFront(&value{at{1, uint64(n + i)}, "x"})
					delete(byKey, order.Remove(order.Back()).(*value).key)
				}
				mu.Unlock()
			}
		})
	}
}
