package input

import (
	"google.golang.org/protobuf/proto"

	"github.com/harnessmesh/harnessmesh/pkg/fault"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/media"
)

// CheckMedia refuses images and documents by their number and size, which costs nothing;
// AcceptMedia reads them.
func CheckMedia(field string, list []*harnessv1.Media) error {
	if len(list) > media.MaxParts {
		return TooLarge(field, len(list), media.MaxParts, "files")
	}
	for i, m := range list {
		switch place := At(field, i); {
		case m.GetBlob() != nil:
			return fault.Invalid(place+".blob", "cannot be set: send the data of the file")
		case len(m.GetData()) == 0:
			return fault.Invalid(place+".data", "must not be empty")
		case len(m.GetData()) > media.MaxData:
			return TooLarge(place+".data", len(m.GetData()), media.MaxData, "bytes")
		}
	}
	return nil
}

// AcceptMedia returns images and documents as they are stored, still with their data. It
// needs up to some seconds for each. field is that of the list.
func AcceptMedia(field string, list []*harnessv1.Media) ([]*harnessv1.Media, error) {
	var accepted []*harnessv1.Media
	for i, m := range list {
		checked, data, err := media.Check(m.GetName(), m.GetData())
		if err != nil {
			return nil, fault.Invalid(At(field, i)+".data", "%v", err)
		}
		checked.Data = data
		accepted = append(accepted, checked)
	}
	return accepted, nil
}

// MediaOf returns the images and documents of an input, and their field; nil if it has
// none.
func MediaOf(item *harnessv1.InboxItem) (field string, list []*harnessv1.Media) {
	switch in := item.GetInput().(type) {
	case *harnessv1.InboxItem_UserMessage:
		return "user_message.media", in.UserMessage.GetMedia()
	case *harnessv1.InboxItem_ToolAnswer:
		return "tool_answer.media", in.ToolAnswer.GetMedia()
	}
	return "", nil
}

// WithMedia returns a copy of an input with other images and documents.
func WithMedia(item *harnessv1.InboxItem, list []*harnessv1.Media) *harnessv1.InboxItem {
	item = proto.CloneOf(item)
	switch in := item.GetInput().(type) {
	case *harnessv1.InboxItem_UserMessage:
		in.UserMessage.Media = list
	case *harnessv1.InboxItem_ToolAnswer:
		in.ToolAnswer.Media = list
	}
	return item
}
