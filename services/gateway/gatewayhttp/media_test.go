package gatewayhttp_test

import (
	"bytes"
	"encoding/base64"
	"net/http"
	"testing"

	"github.com/harnessmesh/harnessmesh/pkg/media"
	"github.com/harnessmesh/harnessmesh/test/kit/mediatest"
)

// TestFilesAreSentAsBase64 starts a run with the largest file, and sends a message that is
// an image alone.
func TestFilesAreSentAsBase64(t *testing.T) {
	b := newBed(t)
	document := mediatest.PDF(2)
	document = append(document, bytes.Repeat([]byte("\n"), media.MaxData-len(document))...)
	start := `{"run_id":"r","goal":"Read it.","workspace":"/work","media":[{"name":"a.pdf","data":"` + base64.StdEncoding.EncodeToString(document) + `"}]}`
	if a := b.post("/v1/runs", start); a.status != http.StatusCreated {
		t.Fatalf("%d %.200s", a.status, a.body)
	}
	file := b.get("/v1/runs/r?spec=true").object(t)["spec"].(map[string]any)["media"].([]any)[0].(map[string]any)
	if file["pages"] != 2.0 || file["name"] != "a.pdf" || file["data"] != "" || file["blob"].(map[string]any)["size"] != float64(media.MaxData) {
		t.Errorf("stored %.300v", file)
	}
	image := `{"media":[{"data":"` + base64.StdEncoding.EncodeToString(mediatest.PNG(mediatest.Noise(9, 7))) + `"}]}`
	if a := b.post("/v1/runs/r/messages", image); a.status != http.StatusAccepted {
		t.Errorf("%d %s", a.status, a.body)
	}
}
