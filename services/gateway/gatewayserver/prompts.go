package gatewayserver

import (
	"cmp"
	"context"

	"github.com/harnessmesh/harnessmesh/pkg/fault"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/profile"
	"github.com/harnessmesh/harnessmesh/pkg/quality"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
	"github.com/harnessmesh/harnessmesh/pkg/transport/access"
)

// defaultNamespace is that of requests that name none.
const defaultNamespace = "default"

// namespaceOf returns the namespace of a request.
func namespaceOf(named string) (string, error) {
	named = cmp.Or(named, defaultNamespace)
	if !runlog.Name.MatchString(named) {
		return "", fault.Invalid("namespace", "must match [A-Za-z0-9_-]{1,64}")
	}
	return named, nil
}

// GetPrompts returns the prompts of a namespace.
func (s *Server) GetPrompts(ctx context.Context, r *harnessv1.GetPromptsRequest) (*harnessv1.GetPromptsResponse, error) {
	namespace, err := namespaceOf(r.GetNamespace())
	if err != nil {
		return nil, err
	}
	set, err := s.profiles.Prompts(ctx, namespace)
	if err != nil {
		return nil, err
	}
	response := &harnessv1.GetPromptsResponse{}
	for _, id := range quality.PromptIDs() {
		response.Prompts = append(response.Prompts, profile.BuiltIn(id))
		for _, p := range set {
			if p.GetId() == id {
				response.Prompts = append(response.Prompts, p)
			}
		}
	}
	return response, nil
}

// SetPrompt replaces a prompt, or restores the built-in one.
func (s *Server) SetPrompt(ctx context.Context, r *harnessv1.SetPromptRequest) (*harnessv1.SetPromptResponse, error) {
	namespace, err := namespaceOf(r.GetNamespace())
	if err != nil {
		return nil, err
	}
	counts, err := s.profiles.SetPrompt(ctx, namespace, &harnessv1.Prompt{Id: r.GetId(), Tier: r.GetTier(), Text: r.GetText(), SetBy: access.Name(ctx)})
	if err != nil {
		return nil, err
	}
	return &harnessv1.SetPromptResponse{Prompt: counts}, nil
}

// GetProfile returns the profile of a workspace.
func (s *Server) GetProfile(ctx context.Context, r *harnessv1.GetProfileRequest) (*harnessv1.GetProfileResponse, error) {
	namespace, err := profileOf(r.GetNamespace(), r.GetProfile())
	if err != nil {
		return nil, err
	}
	state, err := s.profiles.Read(ctx, namespace, profile.Key(r.GetProfile()))
	if err != nil {
		return nil, err
	}
	return &harnessv1.GetProfileResponse{State: state, Figures: quality.ProfileOf(state)}, nil
}

// ResetProfile deletes the profile of a workspace.
func (s *Server) ResetProfile(ctx context.Context, r *harnessv1.ResetProfileRequest) (*harnessv1.ResetProfileResponse, error) {
	namespace, err := profileOf(r.GetNamespace(), r.GetProfile())
	if err != nil {
		return nil, err
	}
	return &harnessv1.ResetProfileResponse{}, s.profiles.Reset(ctx, namespace, profile.Key(r.GetProfile()))
}

// profileOf checks the names of a profile, and returns its namespace.
func profileOf(namespace, name string) (string, error) {
	if name == "" {
		return "", fault.Invalid("profile", "must be the absolute path of a workspace, or the profile that tasks name")
	}
	return namespaceOf(namespace)
}
