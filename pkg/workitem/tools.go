package workitem

// Names of the tools.
const (
	Add          = "work_item_add"
	Update       = "work_item_update"
	List         = "work_item_list"
	SetArtifact  = "work_item_set_artifact"
	FlagRevision = "work_item_flag_revision"
)
