package runspec

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/agentfile"
	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/console"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/model/catalogue"
	"github.com/harnessmesh/harnessmesh/pkg/model/provider"
	"github.com/harnessmesh/harnessmesh/services/gateway"
)

// ModelFlag names another model for an existing run.
type ModelFlag struct {
	Model string `placeholder:"PROVIDER:NAME" help:"Model of the run from the next model call on."`
}

// CheckModel makes the model absolute. In local mode it refuses one that cannot be opened
// with the variables of this terminal. A model of the environment is for runs that are started.
func CheckModel(a *console.Console, model *string, local bool) error {
	if !a.Given["model"] {
		*model = ""
		return nil
	}
	if *model == "" {
		return fmt.Errorf("--model: must not be empty")
	}
	named, err := absoluteModel(*model, ".", local)
	if err != nil {
		return fmt.Errorf("--model: %w", err)
	}
	*model = named
	if !local {
		return nil
	}
	models, err := a.Models()
	if err != nil {
		return err
	}
	if _, _, err := provider.OpenWith(models, named, a.Env); err != nil {
		return fmt.Errorf("--model: %w", err)
	}
	return nil
}

// ChooseTime bounds the request for a provider's list of models.
const ChooseTime = 20 * time.Second

// chooseModel names the model of an agent that names none, and prints it.
func chooseModel(ctx context.Context, a *console.Console, agent *harnessv1.AgentSpec) error {
	models, err := a.Models()
	if err != nil {
		return err
	}
	ctx, stop := a.CancelOnSignal(ctx)
	defer stop()
	ctx, cancel := context.WithTimeout(ctx, ChooseTime)
	defer cancel()
	named, chosen, err := provider.Resolve(ctx, models, agent.GetModel(), a.Env)
	switch {
	case errors.Is(err, provider.ErrNoModel):
		return fmt.Errorf("--model: %w, or set one in an --agent file; harness demo needs none", err)
	case errors.Is(context.Cause(ctx), console.ErrSignal):
		return console.ErrSignal
	case err != nil:
		return fmt.Errorf("--model: %w", err)
	case chosen:
		a.Report("model %s, the catalogue's choice for this provider; --model names another", named)
	}
	agent.Model = named
	return nil
}

const effortField = "spec.agent.reasoning.effort"

// openModels returns an error if a model of an agent or of its summaries cannot be opened in
// this process, or if the first one does not take the agent's effort.
func openModels(a *console.Console, file *agentfile.File, agent *harnessv1.AgentSpec) error {
	models, err := a.Models()
	if err != nil {
		return err
	}
	for i, model := range append([]string{agent.GetModel()}, agent.GetFallbackModels()...) {
		if _, _, err := provider.OpenWith(models, model, a.Env); err != nil {
			return badModel(file, i, err)
		}
	}
	if err := provider.CheckEffort(models, agent.GetModel(), agent.GetReasoning().GetEffort()); err != nil {
		return unusable(file, effortField, "--effort", err)
	}
	if err := openSubAgents(a, models, file, "spec.agent.agents", agent.GetAgents()); err != nil {
		return err
	}
	for field, model := range map[string]string{
		summarizerField: file.Config.GetContext().GetSummarizer().GetModel(), qualityField: file.Config.GetQuality().GetModel(),
	} {
		if model == "" || strings.HasPrefix(model, gateway.CustomSummarizer) {
			continue
		}
		if _, _, err := provider.OpenWith(models, model, a.Env); err != nil {
			return unusable(file, field, "--agent", err)
		}
	}
	return nil
}

// openSubAgents returns an error if the model of a sub-agent, at any level, cannot be opened in
// this process.
func openSubAgents(a *console.Console, models *catalogue.Catalogue, file *agentfile.File, field string, agents []*harnessv1.SubAgent) error {
	for i, s := range agents {
		at := fmt.Sprintf("%s[%d]", field, i)
		if s.GetModel() != "" {
			if _, _, err := provider.OpenWith(models, s.GetModel(), a.Env); err != nil {
				return unusable(file, at+".model", "--agent", err)
			}
		}
		if err := openSubAgents(a, models, file, at+".agents", s.GetAgents()); err != nil {
			return err
		}
	}
	return nil
}

// Fields of models that make no turns.
const (
	summarizerField = "spec.config.context.summarizer.model"
	qualityField    = "spec.config.quality.model"
)

// absoluteModels makes the model files of an agent file in dir absolute.
func absoluteModels(file *agentfile.File, dir string, local bool) (err error) {
	agent := file.Agent
	if agent.Model, err = absoluteModel(agent.GetModel(), dir, local); err != nil {
		return badModel(file, 0, err)
	}
	for i, model := range agent.GetFallbackModels() {
		if agent.FallbackModels[i], err = absoluteModel(model, dir, local); err != nil {
			return badModel(file, i+1, err)
		}
	}
	if summarizer := file.Config.GetContext().GetSummarizer(); summarizer != nil {
		if summarizer.Model, err = absoluteModel(summarizer.GetModel(), dir, local); err != nil {
			return unusable(file, summarizerField, "--agent", err)
		}
	}
	if judging := file.Config.GetQuality(); judging != nil {
		if judging.Model, err = absoluteModel(judging.GetModel(), dir, local); err != nil {
			return unusable(file, qualityField, "--agent", err)
		}
	}
	return nil
}

// badModel returns an error at the place of an unusable model: in the agent file,
// otherwise the flag. 0 is the first model, followed by the fallback models.
func badModel(file *agentfile.File, i int, err error) error {
	field := "spec.agent.model"
	if i > 0 {
		field = fmt.Sprintf("spec.agent.fallback_models[%d]", i-1)
	}
	return unusable(file, field, "--model", err)
}

// absoluteModel validates a model and makes the file of a scripted or recorded one
// absolute, so that the run can be resumed from any directory.
func absoluteModel(model, dir string, local bool) (string, error) {
	if model == "" {
		return "", nil
	}
	provider, name, found := strings.Cut(model, ":")
	if !found || provider == "" {
		return "", fmt.Errorf("%q: expected PROVIDER:NAME, such as openai:gpt-5, anthropic:claude-sonnet-5-5 or script:FILE", model)
	}
	if provider != "script" && provider != "replay" {
		return model, nil
	}
	if name == "" {
		return "", fmt.Errorf("%q: missing file: expected %s:FILE", model, provider)
	}
	if !filepath.IsAbs(name) {
		abs, err := filepath.Abs(filepath.Join(dir, name))
		if err != nil {
			return "", err
		}
		name = abs
	}
	if local {
		info, err := os.Stat(name)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return "", fmt.Errorf("%s does not exist: correct the path, or create the file", name)
		case err != nil:
			return "", err
		case info.IsDir():
			return "", fmt.Errorf("%s is a directory: name a file", name)
		}
	}
	return provider + ":" + name, nil
}
