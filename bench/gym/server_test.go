package gym

import (
	"fmt"
	"os"
	"sync"
	"testing"

	"github.com/harnessmesh/harnessmesh/test/kit/modeltest"
)

// modelServer serves the models of all runs; each run has a separate model name.
type modelServer struct {
	http *modeltest.Server

	mu     sync.Mutex
	models map[string]*servedModel
}

// servedModel is a model at work in one run.
type servedModel struct {
	answer model
	dir    string // the run's folder

	mu               sync.Mutex
	requests, tokens int
	memory           memory
	// musing is a text before each answer with calls.
	musing string
}

// summary is the summary of any part of a conversation.
const summary = `{"facts":["Some of the work was done."],"current_task":"The goal."}`

// processTB is a testing.TB for what outlives the tests.
type processTB struct{ testing.TB }

func (processTB) Helper()        {}
func (processTB) Cleanup(func()) {}
func (processTB) Errorf(format string, args ...any) {
	fmt.Fprintf(os.Stderr, "model server: "+format+"\n", args...)
	os.Exit(1)
}
func (e processTB) Fatalf(format string, args ...any) { e.Errorf(format, args...) }

func startModels() *modelServer {
	s := &modelServer{models: map[string]*servedModel{}}
	s.http = modeltest.NewServerFunc(processTB{}, s.reply)
	return s
}

// add puts a model up under a name, for a run in a folder.
func (s *modelServer) add(name string, m model, dir string) *servedModel {
	s.mu.Lock()
	defer s.mu.Unlock()
	v := &servedModel{answer: m, dir: dir}
	s.models[name] = v
	return v
}

func (s *modelServer) reply(req *modeltest.Request) modeltest.Reply {
	s.mu.Lock()
	v := s.models[req.Model]
	s.mu.Unlock()
	if v == nil {
		return modeltest.Reply{Status: 404, ErrorMessage: "there is no model " + req.Model}
	}
	return v.reply(req)
}

func (v *servedModel) reply(req *modeltest.Request) modeltest.Reply {
	v.mu.Lock()
	defer v.mu.Unlock()
	if len(req.Tools) == 0 {
		reply := modeltest.Reply{Text: summary}
		reply.Usage = &modeltest.Usage{Input: uint64(weigh(req, v.dir)), Output: uint64(weighReply(reply))}
		return reply
	}
	v.memory.add(req)
	reply := v.answer(&chat{req, &v.memory})
	if len(reply.Calls) > 0 {
		reply.Text = v.musing + reply.Text
	}
	in, out := weigh(req, v.dir), weighReply(reply)
	v.requests++
	v.tokens += in + out
	n := v.requests
	for i := range reply.Calls {
		reply.Calls[i].ID = fmt.Sprintf("call_%d_%d", n, i)
	}
	reply.Usage = &modeltest.Usage{Input: uint64(in), Output: uint64(out)}
	return reply
}

// sent is how many requests came, and how many tokens they and their answers had.
func (v *servedModel) sent() (requests, tokens int) {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.requests, v.tokens
}
