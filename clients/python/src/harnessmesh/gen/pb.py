"""Generated from proto/ by clients/python/generate.sh. Do not edit."""

from harnessmesh.gen.harness.v1.compaction_pb2 import *
from harnessmesh.gen.harness.v1.config_pb2 import *
from harnessmesh.gen.harness.v1.content_pb2 import *
from harnessmesh.gen.harness.v1.contract_pb2 import *
from harnessmesh.gen.harness.v1.conversation_pb2 import *
from harnessmesh.gen.harness.v1.environment_pb2 import *
from harnessmesh.gen.harness.v1.error_pb2 import *
from harnessmesh.gen.harness.v1.event_pb2 import *
from harnessmesh.gen.harness.v1.executor_pb2 import *
from harnessmesh.gen.harness.v1.gateway_pb2 import *
from harnessmesh.gen.harness.v1.hook_pb2 import *
from harnessmesh.gen.harness.v1.inbox_pb2 import *
from harnessmesh.gen.harness.v1.inference_pb2 import *
from harnessmesh.gen.harness.v1.local_pb2 import *
from harnessmesh.gen.harness.v1.message_pb2 import *
from harnessmesh.gen.harness.v1.presence_pb2 import *
from harnessmesh.gen.harness.v1.preview_pb2 import *
from harnessmesh.gen.harness.v1.record_pb2 import *
from harnessmesh.gen.harness.v1.run_pb2 import *
from harnessmesh.gen.harness.v1.sandbox_pb2 import *
from harnessmesh.gen.harness.v1.snapshot_pb2 import *
from harnessmesh.gen.harness.v1.steering_pb2 import *
from harnessmesh.gen.harness.v1.tool_pb2 import *
from harnessmesh.gen.harness.v1.toolhost_pb2 import *
from harnessmesh.gen.harness.v1.workitem_pb2 import *
