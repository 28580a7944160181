"""Programs in the sandbox of the sample that Inspect is scoring."""

from __future__ import annotations

import math

from inspect_ai.util import OutputLimitExceededError, sandbox

from aigo_bridge.errors import SampleError, UnsupportedPlanError
from aigo_bridge.scoring.code_exec import TIME_LIMIT, CodeResult


class SandboxCodeRunner:
    """The core's `CodeRunner`, in whatever sandbox the task was given: docker's or ours."""

    async def run(self, code: str, *, stdin: str = "", time_limit: float = TIME_LIMIT) -> CodeResult:
        """Run a program with the sandbox's `python3`.

        Raises:
            SampleError: there is no sandbox, or it failed.
        """
        try:
            result = await sandbox().exec(
                ["python3", "-I", "-c", code],
                input=stdin,
                timeout=math.ceil(time_limit),
                timeout_retry=False,
            )
        except TimeoutError:
            return CodeResult("time", None, "", "")
        except OutputLimitExceededError:
            return CodeResult("output", None, "", "")
        except (OSError, LookupError, RuntimeError, UnsupportedPlanError) as error:
            raise SampleError(f"the sandbox failed: {error}", stage="score", kind="SandboxError") from error
        if result.returncode in (126, 127) and "python3" in result.stderr:
            raise SampleError(
                f"the sandbox has no python3: {result.stderr.strip()[:200]}",
                stage="score",
                kind="SandboxError",
            )
        return CodeResult("exit", result.returncode, result.stdout, result.stderr)
