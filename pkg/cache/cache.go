// Package cache keeps values in memory, bounded by their bytes. When they exceed the
// limit, the values that were not used for longest are dropped first.
//
// Invariants:
//   - The bytes of the values are at most the limit, unless there is only one value: the
//     newest always stays. A caller that keeps no large values does not put them.
//   - A value is counted with the size that it was put with. The caller puts a value
//     whose size has changed again.
//
// Values are shared by those that get them. A value that only one caller may use is taken
// out of the cache and put back.
package cache

import "sync"

// Cache keeps values by their keys. It is safe for concurrent use. Its zero value keeps
// only the newest value.
type Cache[K comparable, V any] struct {
	limit int

	mu   sync.Mutex
	used int
	at   map[K]*item[K, V]
	// ends is the link between the newest use (next) and the oldest one (previous).
	ends item[K, V]
}

// item is a value in the order of use.
type item[K comparable, V any] struct {
	key            K
	value          V
	size           int
	previous, next *item[K, V]
}

// New returns a cache of at most limit bytes.
func New[K comparable, V any](limit int) *Cache[K, V] { return &Cache[K, V]{limit: limit} }

// Limit returns the bytes that are kept at most.
func (c *Cache[K, V]) Limit() int { return c.limit }

// Used returns the bytes of the values.
func (c *Cache[K, V]) Used() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.used
}

// Get returns a value, which counts as a use; ok is false if there is none.
func (c *Cache[K, V]) Get(key K) (value V, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	i, ok := c.at[key]
	if !ok {
		return value, false
	}
	if c.ends.next != i {
		i.unlink()
		c.link(i)
	}
	return i.value, true
}

// Add stores a value of size bytes, unless there is one: for values that never change.
func (c *Cache[K, V]) Add(key K, value V, size int) {
	c.Replace(key, value, size, func(V) bool { return false })
}

// Put stores a value of size bytes instead of the one that is there.
func (c *Cache[K, V]) Put(key K, value V, size int) {
	c.Replace(key, value, size, func(V) bool { return true })
}

// Replace stores a value of size bytes. If there is one, replaces decides, under the
// lock of the cache, whether the new value replaces it.
func (c *Cache[K, V]) Replace(key K, value V, size int, replaces func(old V) bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if old, ok := c.at[key]; ok {
		if !replaces(old.value) {
			return
		}
		c.remove(old)
	}
	if c.at == nil {
		c.at = map[K]*item[K, V]{}
	}
	i := &item[K, V]{key: key, value: value, size: size}
	c.at[key] = i
	c.link(i)
	for c.used += size; c.used > c.limit && len(c.at) > 1; {
		c.remove(c.ends.previous)
	}
}

// Take removes a value and returns it; ok is false if there is none.
func (c *Cache[K, V]) Take(key K) (value V, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	i, ok := c.at[key]
	if !ok {
		return value, false
	}
	c.remove(i)
	return i.value, true
}

// TakeAll removes the values whose keys match.
func (c *Cache[K, V]) TakeAll(matches func(K) bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for key, i := range c.at {
		if matches(key) {
			c.remove(i)
		}
	}
}

// remove removes an item. The caller has locked mu.
func (c *Cache[K, V]) remove(i *item[K, V]) {
	i.unlink()
	delete(c.at, i.key)
	c.used -= i.size
}

// link makes an item the newest. The caller has locked mu.
func (c *Cache[K, V]) link(i *item[K, V]) {
	if c.ends.next == nil {
		c.ends.next, c.ends.previous = &c.ends, &c.ends
	}
	i.previous, i.next = &c.ends, c.ends.next
	i.previous.next, i.next.previous = i, i
}

func (i *item[K, V]) unlink() {
	i.previous.next, i.next.previous = i.next, i.previous
}
