package turnserver

import (
	"container/list"
	"context"
	"sync"

	"github.com/harnessmesh/harnessmesh/pkg/runlog"
)

// maxBlobs bounds the blobs in memory, in bytes.
const maxBlobs = 64 << 20

// blobCache keeps the blobs that requests and calls need again and again: reasoning,
// media and arguments. The ones that were not used for longest are dropped first. Blobs never
// change, so nothing is invalidated.
type blobCache struct {
	log   runlog.BlobReader
	limit int

	mu    sync.Mutex
	bytes int
	order *list.List // of *cachedBlob, the newest first
	byKey map[blobKey]*list.Element
}

type blobKey struct {
	run    runlog.Run
	digest string
}

type cachedBlob struct {
	key  blobKey
	data []byte
}

func newBlobCache(log runlog.BlobReader, limit int) *blobCache {
	return &blobCache{log: log, limit: limit, order: list.New(), byKey: map[blobKey]*list.Element{}}
}

// read returns a blob of a run. The caller must not change it.
func (c *blobCache) read(ctx context.Context, run runlog.Run, digest string) ([]byte, error) {
	key := blobKey{run: run, digest: digest}
	if data, ok := c.get(key); ok {
		return data, nil
	}
	data, err := c.log.Blob(ctx, run, digest)
	if err != nil {
		return nil, err
	}
	c.put(key, data)
	return data, nil
}

func (c *blobCache) get(key blobKey) ([]byte, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e, ok := c.byKey[key]
	if !ok {
		return nil, false
	}
	c.order.MoveToFront(e)
	return e.Value.(*cachedBlob).data, true
}

func (c *blobCache) put(key blobKey, data []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, ok := c.byKey[key]; ok || len(data) > c.limit/2 {
		return
	}
	c.byKey[key] = c.order.PushFront(&cachedBlob{key: key, data: data})
	for c.bytes += len(data); c.bytes > c.limit; {
		oldest := c.order.Back()
		blob := c.order.Remove(oldest).(*cachedBlob)
		delete(c.byKey, blob.key)
		c.bytes -= len(blob.data)
	}
}
