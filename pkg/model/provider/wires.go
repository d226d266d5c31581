package provider

import (
	"slices"
	"strings"

	"github.com/harnessmesh/harnessmesh/pkg/media"
	"github.com/harnessmesh/harnessmesh/pkg/model/adapter"
	"github.com/harnessmesh/harnessmesh/pkg/model/anthropic"
	"github.com/harnessmesh/harnessmesh/pkg/model/catalogue"
	"github.com/harnessmesh/harnessmesh/pkg/model/openai"
	"github.com/harnessmesh/harnessmesh/pkg/model/responses"
)

// keyHeader returns the header of a provider's key; empty for Authorization with Bearer.
func keyHeader(p *catalogue.Provider) string {
	header := p.KeyHeader
	if header == "" && p.Speaks(catalogue.WireMessages) {
		header = "X-Api-Key"
	}
	if header == "Authorization" {
		return ""
	}
	return header
}

// endpoint returns what all wires of the provider share.
func (o *opener) endpoint() adapter.Endpoint {
	p, a := o.described, o.access
	return adapter.Endpoint{
		Name: p.Name, BaseURL: a.address, Own: a.own, APIKey: a.key, KeyHeader: keyHeader(p), Header: a.header, KeyVariable: a.keyName, BaseVariable: a.addressName,
		Takes: o.takes, Choices: o.choices(), Schemas: p.AnswerSchema && a.own, Body: p.Body, HTTPClient: o.client,
	}
}

func (o *opener) chat() (wire, error) {
	p := o.described
	return openai.New(openai.Config{
		Endpoint: o.endpoint(), Reasoning: reasoning(p.Reasoning), Effort: openai.EffortStyle(p.Effort), Efforts: o.efforts, CacheKey: p.CacheKey && o.access.own,
		NoStreamOptions: p.NoStreamOptions, NoUserAfterResults: p.NoUserAfterResults, ShortCallIDs: p.ShortCallIDs,
	})
}

func (o *opener) responses() (wire, error) {
	return responses.New(responses.Config{Endpoint: o.endpoint(), Efforts: o.efforts, Reasons: o.reasons})
}

// backs are the values of reasoning.back as package openai has them.
var backs = map[catalogue.Back]openai.Back{
	catalogue.BackNever: openai.BackNever, catalogue.BackCalls: openai.BackWithCalls, catalogue.BackAlways: openai.BackAlways,
}

func reasoning(r catalogue.ReasoningField) openai.Reasoning {
	out := openai.Reasoning{Field: r.Field, Back: backs[r.Back], Chunks: r.Chunks, Signature: r.Signature}
	if r.Blank != nil {
		out.Blank, out.HasBlank = *r.Blank, true
	}
	return out
}

func (o *opener) messages() (wire, error) {
	e := o.endpoint()
	e.KeyHeader = o.described.KeyHeader
	return anthropic.New(anthropic.Config{
		Endpoint:  e,
		MaxOutput: func(name string) uint32 { return o.entry(name).MaxOutput },
		Thinking: func(name string) anthropic.Thinking {
			e := o.entry(name)
			return anthropic.Thinking{Mode: anthropic.ThinkingMode(e.Thinking), Efforts: e.Efforts, AlwaysOn: e.AlwaysOn}
		},
		Reads: o.reads,
	})
}

// reads returns the other models whose reasoning a model reads, as the provider names
// them.
func (o *opener) reads(name string) []string {
	reads := slices.Clone(o.entry(name).Reads)
	if prefix := o.described.ModelPrefix; prefix != "" && strings.HasPrefix(name, prefix) {
		for i := range reads {
			reads[i] = prefix + reads[i]
		}
	}
	return reads
}

// choices are the models for requests that name none, as the provider names them.
func (o *opener) choices() []string {
	if o.described.Choices != nil || o.described.ModelsOf == "" {
		return o.described.Choices
	}
	var names []string
	for _, name := range o.catalogue.Provider(o.described.ModelsOf).Choices {
		names = append(names, o.described.ModelPrefix+name)
	}
	return names
}

// takes returns the images and documents that a model takes.
func (o *opener) takes(name string) media.Takes {
	images, documents := o.catalogue.Takes(o.described.Name + ":" + name)
	return media.Takes{Images: images, Documents: documents}
}
