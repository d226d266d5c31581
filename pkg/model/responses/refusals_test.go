package responses

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/model"
	"github.com/harnessmesh/harnessmesh/pkg/model/adapter"
	"github.com/harnessmesh/harnessmesh/pkg/model/wire"
)

func TestFailures(t *testing.T) {
	for data, want := range map[string]model.Error{
		`{"type":"error","code":"server_error","message":"m","param":null,"sequence_number":3}`: {Retryable: true, RetryAfter: -1, Message: "m"},
		`{"type":"error","error":{"type":"x","code":"server_error","message":"m"}}`:             {Retryable: true, RetryAfter: -1, Message: "m"},
		`{"error":{"message":"m"}}`: {Retryable: true, RetryAfter: -1, Message: "m"},
		`{"type":"response.failed","response":{"error":{"code":"server_error","message":"m"}}}`: {Retryable: true, RetryAfter: -1, Message: "m"},
		`{"type":"response.failed","response":{"status":"failed","error":null}}`:                {Retryable: true, RetryAfter: -1, Message: "error"},
		`{"type":"response.failed","error":{"code":"invalid_prompt","message":"m"}}`:            {RetryAfter: -1, Message: "m"},
		`{"type":"response.failed"}`: {Retryable: true, RetryAfter: -1, Message: "error"},
		`{"type":"response.completed","response":{"status":"failed","error":{"code":"bio_policy","message":"m"}}}`: {RetryAfter: -1, Message: "m"},
		failed("rate_limit_exceeded", "Please try again in 1.5s. Visit x."):                                        {Retryable: true, RetryAfter: 1500e6, Message: "Visit"},
		failed("rate_limit_exceeded", "Try again in 6m0s."):                                                        {Retryable: true, RetryAfter: 360e9},
		failed("rate_limit_exceeded", "Try again in 35 seconds."):                                                  {Retryable: true, RetryAfter: 35e9},
		failed("rate_limit_exceeded", "try again in 20ms"):                                                         {Retryable: true, RetryAfter: 20e6},
		failed("rate_limit_exceeded", "try again in 99999h"):                                                       {Retryable: true, RetryAfter: 86400e9},
		failed("rate_limit_exceeded", "try again in 1.2.3s"):                                                       {Retryable: true, RetryAfter: -1},
		failed("rate_limit_exceeded", "try again later"):                                                           {Retryable: true, RetryAfter: -1},
		failed("server_error", "try again in 5s"):                                                                  {Retryable: true, RetryAfter: -1},
		failed("vector_store_timeout", "m"):                                                                        {Retryable: true, RetryAfter: -1},
		failed("failed_to_download_image", "m"):                                                                    {Retryable: true, RetryAfter: -1},
		failed("news", "m"):                                                                                        {Retryable: true, RetryAfter: -1},
		failed("invalid_prompt", "m"):                                                                              {RetryAfter: -1},
		failed("cyber_policy", "m"):                                                                                {RetryAfter: -1},
		failed("image_content_policy_violation", "m"):                                                              {RetryAfter: -1},
		failed("image_too_large", "m"):                                                                             {RetryAfter: -1},
		failed("unsupported_image_media_type", "m"):                                                                {RetryAfter: -1},
		failed("data_residency_mismatch", "m"):                                                                     {RetryAfter: -1},
		failed("empty_image_file", "m"):                                                                            {RetryAfter: -1},
		failed("insufficient_quota", "m"):                                                                          {RetryAfter: -1},
		failed("credit_balance_exhausted", "m"):                                                                    {RetryAfter: -1},
		failed("context_length_exceeded", "m"):                                                                     {RetryAfter: -1, ContextExceeded: true},
		failed("", "Your input exceeds the context window of this model."):                                         {RetryAfter: -1, ContextExceeded: true},
		`{"type":"error","error":{"type":"invalid_request_error","message":"m"}}`:                                  {RetryAfter: -1},
		`{"type":"error","error":{"code":"invalid_encrypted_content","message":"m"}}`:                              {RetryAfter: -1, Adjustment: harnessv1.Adjustment_ADJUSTMENT_NO_OPAQUE},
		`[]`: {Retryable: true, RetryAfter: -1},
		`{`:  {Retryable: true, RetryAfter: -1},
		`{"type":"response.completed","response":[]}`: {Retryable: true, RetryAfter: -1},
	} {
		_, err := newDecoder().stream().Add("", []byte(data))
		var got *model.Error
		if !errors.As(err, &got) {
			t.Errorf("%s: error %v", data, err)
			continue
		}
		if got.Retryable != want.Retryable || got.RetryAfter != want.RetryAfter || got.ContextExceeded != want.ContextExceeded ||
			got.Adjustment != want.Adjustment || !strings.Contains(got.Message, want.Message) {
			t.Errorf("%s:\n%+v, want\n%+v", data, *got, want)
		}
	}
	for _, data := range []string{"", "overloaded", `{"type":"overloaded_error","message":"m"}`} {
		if _, err := newDecoder().stream().Add("error", []byte(data)); err == nil {
			t.Errorf("an event of the type error with the data %q is no error", data)
		}
	}
}

func failed(code, message string) string {
	return fmt.Sprintf(`{"type":"response.failed","response":{"error":{"code":%q,"message":%q}}}`, code, message)
}

func TestAdjustments(t *testing.T) {
	const (
		opaque    = harnessv1.Adjustment_ADJUSTMENT_NO_OPAQUE
		summary   = harnessv1.Adjustment_ADJUSTMENT_NO_SUMMARY
		encrypted = harnessv1.Adjustment_ADJUSTMENT_NO_ENCRYPTED
		chat      = harnessv1.Adjustment_ADJUSTMENT_WIRE_CHAT
	)
	for _, c := range []struct {
		status     int
		body       string
		own, other harnessv1.Adjustment
	}{
		{400, `{"error":{"code":"invalid_encrypted_content","message":"m"}}`, opaque, opaque},
		{400, `{"error":{"message":"The encrypted content gAAA could not be verified."}}`, opaque, opaque},
		{404, `{"error":{"message":"Item with id 'rs_1' not found. Items are not persisted when store is set to false.","param":"input"}}`, opaque, opaque},
		{400, `{"error":{"message":"Item 'fc_1' of type 'function_call' was provided without its required 'reasoning' item: 'rs_1'."}}`, opaque, opaque},
		{400, `{"error":{"message":"Item 'rs_1' of type 'reasoning' was provided without its required following item."}}`, opaque, opaque},
		{400, `{"error":{"message":"Item 'msg_1' of type 'message' was provided without its required preceding item of type 'reasoning'"}}`, opaque, opaque},
		{400, `{"error":{"message":"Duplicate item found with id rs_1. Remove duplicate items from your input and try again.","param":"input","code":null}}`, opaque, opaque},
		{400, `{"error":{"message":"Referenced reasoning item rs_1 was not found or has expired."}}`, opaque, opaque},
		{400, `{"error":{"message":"Unknown parameter: 'input[273].status'.","param":"input[273].status","code":"unknown_parameter"}}`, opaque, opaque},
		{400, `{"error":{"message":"Invalid 'input[39].content': array too long. Expected an array with maximum length 0, but got an array with length 1 instead."}}`, opaque, opaque},
		{400, `{"error":{"message":"Invalid 'input[3].id': ''. Expected an ID that begins with 'rs'."}}`, opaque, opaque},
		{400, `{"code":"invalid-argument","error":"Could not decrypt the provided encrypted_content."}`, opaque, opaque},
		{400, `{"error":{"message":"Could not decode the compaction blob."}}`, opaque, opaque},
		{400, `{"error":{"code":"unsupported_value","param":"reasoning.summary","message":"Your organization must be verified to generate reasoning summaries."}}`, summary, summary},
		{429, `{"error":{"param":"reasoning.summary","message":"m"}}`, 0, 0},
		{400, `{"error":{"message":"Encrypted content is not supported with this model.","param":"include"}}`, encrypted, encrypted},
		{400, `{"error":{"message":"This model is only supported in /v1/chat/completions."}}`, chat, chat},
		{404, `{"error":{"param":"model","message":"This model is not supported in v1/responses: use v1/chat/completions."}}`, chat, chat},
		{404, `{"error":{"param":"model","message":"This model is only supported in v1/responses and not in v1/chat/completions."}}`, 0, 0},
		{400, `{"error":{"message":"Function tools are not supported in /v1/chat/completions. To use function tools, use /v1/responses."}}`, 0, 0},
		{404, `404 page not found`, 0, chat},
		{404, `{"detail":"Not Found"}`, 0, chat},
		{405, `{"detail":"Method Not Allowed"}`, 0, chat},
		{404, `{"error":{"code":"model_not_found","message":"m"}}`, 0, 0},
		{404, `{"error":{"code":404,"param":"model","message":"The model does not exist."}}`, 0, 0},
		{400, `{"error":{"message":"Unknown parameter: 'x'."}}`, 0, 0},
		{500, ``, 0, 0},
	} {
		for own, want := range map[bool]harnessv1.Adjustment{true: c.own, false: c.other} {
			cfg := Config{Endpoint: adapter.Endpoint{Own: own}}
			refusals := cfg.refusals()
			e := refusals.Classify(&wire.StatusError{Status: c.status, Body: []byte(c.body)})
			if e.Adjustment != want {
				t.Errorf("%d %s (own %t): %v, want %v", c.status, c.body, own, e.Adjustment, want)
			}
		}
	}
	cfg := Config{}
	if cfg.fill(); !cfg.Own {
		t.Errorf("the default address is not the service's own")
	}
}
