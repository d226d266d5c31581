package toolhostserver

import "google.golang.org/protobuf/proto"

// entryOverhead is about what a remembered result costs beside its fields, bytes.
const entryOverhead = 512

// memory keeps the newest results up to a size; the oldest go first.
type memory struct {
	limit, size int
	results     map[string]result
	// order of arrival; those before first are gone.
	order []string
	first int
}

func newMemory(limit int) *memory {
	return &memory{limit: limit, results: make(map[string]result)}
}

func (m *memory) recall(key string) result { return m.results[key] }

func (m *memory) keep(key string, resp result) {
	if _, has := m.results[key]; has {
		return
	}
	m.results[key] = resp
	m.order = append(m.order, key)
	m.size += weight(key, resp)
	for m.size > m.limit && m.first < len(m.order) {
		oldest := m.order[m.first]
		m.size -= weight(oldest, m.results[oldest])
		delete(m.results, oldest)
		m.order[m.first] = ""
		m.first++
	}
	if m.first > len(m.order)/2 {
		m.order = append([]string(nil), m.order[m.first:]...)
		m.first = 0
	}
}

func weight(key string, resp result) int {
	return len(key) + proto.Size(resp) + entryOverhead
}
