package toolhostserver

import "google.golang.org/protobuf/proto"

// resultOverhead is about what a cached result needs in addition to its fields, bytes.
const resultOverhead = 512

// resultCache keeps the newest results up to a total size.
type resultCache struct {
	limit, size int
	results     map[string]response
	// order has the keys in the order of arrival. Those before first are removed.
	order []string
	first int
}

func newResultCache(limit int) *resultCache {
	return &resultCache{limit: limit, results: make(map[string]response)}
}

// get returns the result of a call, nil if it is not cached.
func (c *resultCache) get(key string) response { return c.results[key] }

func (c *resultCache) add(key string, resp response) {
	if _, duplicate := c.results[key]; duplicate {
		return
	}
	c.results[key] = resp
	c.order = append(c.order, key)
	c.size += resultSize(key, resp)
	for c.size > c.limit && c.first < len(c.order) {
		oldest := c.order[c.first]
		c.size -= resultSize(oldest, c.results[oldest])
		delete(c.results, oldest)
		c.order[c.first] = ""
		c.first++
	}
	if c.first > len(c.order)/2 {
		c.order = append([]string(nil), c.order[c.first:]...)
		c.first = 0
	}
}

func resultSize(key string, resp response) int {
	return len(key) + proto.Size(resp) + resultOverhead
}
