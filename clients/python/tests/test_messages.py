"""How mappings become messages."""

import pytest

from harnessmesh import InvalidError, pb
from harnessmesh.messages import message


@pytest.mark.parametrize("policy", ["allow", "ask", "deny", "ALLOW", "Ask", "TOOL_DECISION_DENY", pb.TOOL_DECISION_ASK])
def test_a_policy_is_spelt_as_in_agent_files(policy: str | int) -> None:
    agent = message(pb.AgentSpec, "agent", {"name": "a", "tools": [{"name": "run_command", "policy": policy}]})
    want = (
        policy
        if isinstance(policy, int)
        else pb.ToolDecision.Value("TOOL_DECISION_" + policy.upper().removeprefix("TOOL_DECISION_"))
    )
    assert agent is not None and agent.tools[0].policy == want


def test_an_unknown_policy_is_refused_with_the_list() -> None:
    with pytest.raises(InvalidError) as refused:
        message(pb.AgentSpec, "agent", {"tools": [{"name": "a", "policy": "ask"}, {"name": "b", "policy": "alow"}]})
    assert 'agent.tools[1].policy: "alow": expected one of allow, ask, deny' in str(refused.value)
