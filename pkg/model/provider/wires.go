package provider

import (
	"slices"
	"strings"

	"github.com/harnessmesh/harnessmesh/pkg/media"
	"github.com/harnessmesh/harnessmesh/pkg/model/anthropic"
	"github.com/harnessmesh/harnessmesh/pkg/model/catalogue"
	"github.com/harnessmesh/harnessmesh/pkg/model/openai"
	"github.com/harnessmesh/harnessmesh/pkg/model/responses"
)

// bearerHeader is the header whose key follows the word Bearer.
const bearerHeader = "Authorization"

// keyHeader returns the header of a provider's key; empty for bearerHeader.
func keyHeader(p *catalogue.Provider) string {
	header := p.KeyHeader
	if header == "" && p.Speaks(catalogue.WireMessages) {
		header = "X-Api-Key"
	}
	if header == bearerHeader {
		return ""
	}
	return header
}

func (o *opener) chat() (wire, error) {
	p, a := o.described, o.access
	return openai.New(openai.Config{
		Name: p.Name, BaseURL: a.address, Own: a.own, APIKey: a.key, KeyHeader: keyHeader(p), Header: a.header,
		KeyVariable: a.keyName, BaseVariable: a.addressName, Reasoning: reasoning(p.Reasoning), Effort: openai.EffortStyle(p.Effort),
		Efforts: o.efforts, Takes: o.takes, Choices: o.choices(), CacheKey: p.CacheKey && a.own, Schemas: p.AnswerSchema && a.own, NoStreamOptions: p.NoStreamOptions,
		NoUserAfterResults: p.NoUserAfterResults, ShortCallIDs: p.ShortCallIDs, Body: p.Body, HTTPClient: o.client,
	})
}

func (o *opener) responses() (wire, error) {
	p, a := o.described, o.access
	return responses.New(responses.Config{
		Name: p.Name, BaseURL: a.address, Own: a.own, APIKey: a.key, KeyHeader: keyHeader(p), Header: a.header,
		KeyVariable: a.keyName, BaseVariable: a.addressName, Efforts: o.efforts, Reasons: o.reasons, Takes: o.takes, Choices: o.choices(),
		Schemas: p.AnswerSchema && a.own, Body: p.Body, HTTPClient: o.client,
	})
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
	p, a := o.described, o.access
	return anthropic.New(anthropic.Config{
		Name: p.Name, BaseURL: a.address, APIKey: a.key, KeyHeader: p.KeyHeader, Header: a.header,
		KeyVariable: a.keyName, BaseVariable: a.addressName, Body: p.Body, HTTPClient: o.client,
		MaxOutput: func(name string) uint32 { return o.entry(name).MaxOutput },
		Thinking: func(name string) anthropic.Thinking {
			e := o.entry(name)
			return anthropic.Thinking{Mode: anthropic.ThinkingMode(e.Thinking), Efforts: e.Efforts, AlwaysOn: e.AlwaysOn}
		},
		Reads: o.reads, Takes: o.takes, Choices: o.choices(), Schemas: p.AnswerSchema && a.own,
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
