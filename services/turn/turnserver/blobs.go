package turnserver

import (
	"context"

	"github.com/harnessmesh/harnessmesh/pkg/cache"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
)

// maxBlobs bounds the blobs in memory, in bytes.
const maxBlobs = 64 << 20

// blobCache keeps the blobs that requests and calls need again and again: reasoning,
// media and arguments. Blobs never change, so nothing is invalidated. One that would take
// more than half of the room is not kept.
type blobCache struct {
	log   runlog.BlobReader
	blobs *cache.Cache[blobKey, []byte]
}

type blobKey struct {
	run    runlog.Run
	digest string
}

func newBlobCache(log runlog.BlobReader, limit int) *blobCache {
	return &blobCache{log: log, blobs: cache.New[blobKey, []byte](limit)}
}

// read returns a blob of a run. The caller must not change it.
func (c *blobCache) read(ctx context.Context, run runlog.Run, digest string) ([]byte, error) {
	key := blobKey{run: run, digest: digest}
	if data, ok := c.blobs.Get(key); ok {
		return data, nil
	}
	data, err := c.log.Blob(ctx, run, digest)
	if err != nil {
		return nil, err
	}
	if len(data) <= c.blobs.Limit()/2 {
		c.blobs.Add(key, data, len(data))
	}
	return data, nil
}
