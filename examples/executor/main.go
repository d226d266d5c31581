// Command executor is a custom executor: it runs between turn and stopdecision and
// reminds the agent of its goal every few turns.
//
//	harness provision --nats nats://127.0.0.1:4222 --executor reminder
//	harness serve --nats nats://127.0.0.1:4222
//	go run ./examples/executor --start "The goal" --model openai:gpt-5
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/proto"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	"github.com/harnessmesh/harnessmesh/pkg/executor"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runlog/jetstream"
	"github.com/harnessmesh/harnessmesh/pkg/runstate"
	"github.com/harnessmesh/harnessmesh/pkg/transport/localkey"
	"github.com/harnessmesh/harnessmesh/pkg/workflow"
)

const name = "reminder"

// every is the number of turns between two reminders.
const every = 3

// decide is pure: the same step has the same outcome. It passes the message on
// unchanged, because the next executor in the cycle expects that message.
func decide(in *harnessv1.StepInput) (*harnessv1.StepOutput, error) {
	turn := in.GetStep().GetTurnComplete()
	if turn == nil {
		return nil, errors.New("reminder: expected a step with a TurnComplete; place this executor after turn")
	}
	s := proto.CloneOf(in.GetStep().GetSnapshot()) // never changed in place
	outcome := &harnessv1.Outcome{Step: &harnessv1.Step{
		From:     name,
		To:       workflow.Next(s.GetWorkflow(), name),
		Snapshot: s,
		Message:  in.GetStep().GetMessage(),
	}}
	if !turn.GetAgentDone() && !turn.GetAwaiting() && turn.GetTurnNumber()%every == 0 {
		outcome.Appended = runstate.AppendMessages(s, turn.GetTurnNumber(), &harnessv1.Message{
			Role:    harnessv1.Role_ROLE_USER,
			Kind:    harnessv1.MessageKind_MESSAGE_KIND_GUIDANCE,
			Content: content.Inline("You are working on: " + s.GetGoalPreview()),
		})
	}
	return &harnessv1.StepOutput{Output: &harnessv1.StepOutput_Outcome{Outcome: outcome}}, nil
}

// start starts a run whose workflow has the executor in it.
func start(ctx context.Context, gateway, goal, model, workspace string) error {
	notes, err := localkey.UserNotes(os.Getenv)
	if err != nil {
		return err
	}
	// A gateway on this machine requires the key that it has noted for its user.
	address, key, err := notes.Dial(gateway, true)
	if err != nil {
		return err
	}
	conn, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithPerRPCCredentials(key))
	if err != nil {
		return err
	}
	started, err := harnessv1.NewGatewayServiceClient(conn).StartRun(ctx, &harnessv1.StartRunRequest{Spec: &harnessv1.RunSpec{
		Goal:      content.Inline(goal),
		Agent:     &harnessv1.AgentSpec{Model: model},
		Workspace: workspace,
		Workflow:  []string{workflow.Repair, workflow.Compaction, workflow.Turn, name, workflow.StopDecision},
	}})
	if err == nil {
		fmt.Println(started.GetRunId())
	}
	return errors.Join(err, conn.Close())
}

func run(ctx context.Context) error {
	here, err := os.Getwd()
	if err != nil {
		return err
	}
	url := flag.String("nats", "nats://127.0.0.1:4222", "NATS server")
	gateway := flag.String("gateway", "127.0.0.1:7447", "gateway")
	goal := flag.String("start", "", "goal of a run to start; empty starts none")
	model := flag.String("model", "openai:gpt-5", "model of that run")
	workspace := flag.String("workspace", here, "its workspace, an absolute path on the tool host")
	flag.Parse()

	log, err := jetstream.Open(ctx, jetstream.Config{URL: *url, Name: name})
	if err != nil {
		return err
	}
	defer log.Close()
	if *goal != "" {
		if err := start(ctx, *gateway, *goal, *model, *workspace); err != nil {
			return err
		}
	}
	return executor.Run(ctx, executor.Config{Log: log, Instance: executor.NewInstance()}, &executor.Pure{ExecutorName: name, Decide: decide})
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "executor:", err)
		os.Exit(1)
	}
}
