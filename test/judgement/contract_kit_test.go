package judgement

import "google.golang.org/protobuf/proto"

func contractNumber(n uint32) *uint32 { return proto.Uint32(n) }
