"""Parts: functions that only machine code calls become part of what calls them, and are never made by themselves.

numba optimises every function and makes machine code of it, and then again of all its callees together with whatever
calls them. Here callees stay as they were written down, until a function that Python calls is made with all of them.
"""

from __future__ import annotations

import gc
import logging
from functools import cache
from typing import Any

from llvmlite.binding import parse_assembly  # type: ignore[import-untyped]  # has none
from numba import _dynfunc  # type: ignore[attr-defined]  # written in C
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import CompilerBase, DefaultPassBuilder
from numba.core.compiler_machinery import register_pass
from numba.core.typed_passes import InlineOverloads, NativeLowering, NopythonRewrites
from numba.core.untyped_passes import (
    InlineClosureLikes,
    InlineInlinables,
    LiteralPropagationSubPipelinePass,
    LiteralUnroll,
    MakeFunctionToJitFunction,
    RewriteDynamicRaises,
    WithLifting,
)

#: Steps for closures, contexts, errors, arrays that are computed as a whole, and loops over tuples.
_IDLE = (
    WithLifting,
    InlineClosureLikes,
    RewriteDynamicRaises,
    MakeFunctionToJitFunction,
    InlineInlinables,
    LiteralUnroll,
    LiteralPropagationSubPipelinePass,
    InlineOverloads,
    NopythonRewrites,
)


def _library(kind: Any, state: Any) -> Any:
    """Where the code of a function goes."""
    return kind(state.targetctx.codegen(), state.func_id.func_qualname)


class _Unmade(JITCodeLibrary):
    """What a part is written down in: callers link it, nobody runs it."""

    def _optimize_final_module(self) -> None:
        """Callers do."""

    def _finalize_final_module(self) -> None:
        self._finalized = True


class _Made(JITCodeLibrary):
    """Machine code for Python, which is kept without what it was made of: nobody links it."""

    def serialize_using_object_code(self) -> tuple[str, str, tuple[bytes, bytes]]:
        """Machine code, and the names in it."""
        made: Any = super()
        own = [each.name for each in made._get_module_for_linking().functions if not each.is_declaration]
        names: Any = parse_assembly("\n".join(f'define void @"{name}"() {{ ret void }}' for name in own))
        return self.name, "object", (made._get_compiled_object(), names.as_bitcode())


@register_pass(mutates_CFG=True, analysis_only=False)  # type: ignore[no-untyped-call]  # numba's
class _PartLowering(NativeLowering):
    """The last step for a part: it is written down, and others may call it."""

    _name = "part_lowering"

    def run_pass(self, state: Any) -> bool:
        state.library = _library(_Unmade, state)
        state.flags.no_compile = True
        super().run_pass(state)  # type: ignore[no-untyped-call]  # numba's
        lowered = state["cr"]
        nowhere = _dynfunc.make_function(
            lowered.fndesc.lookup_module(), state.func_id.func_name, "", 0, lowered.env, (state.library,)
        )
        state["cr"] = lowered._replace(cfunc=nowhere)  # what numba knows it by; Python does not see it
        state.targetctx.insert_user_function(nowhere, lowered.fndesc, [state.library])
        return True


class Whole(CompilerBase):
    """How functions are compiled that Python calls."""

    def compile_extra(self, func: Any) -> Any:
        """As numba does it, but nothing is made that goes in circles: looking for that would take a tenth of it."""
        _tell()
        was_enabled = gc.isenabled()
        gc.disable()
        try:
            return super().compile_extra(func)  # type: ignore[no-untyped-call]  # numba's
        finally:
            if was_enabled:
                gc.enable()

    def define_pipelines(self) -> list[Any]:
        """The steps of numba, without those for what plain loops over numbers have not."""
        self.state.library = _library(_Made, self.state)
        self.state.library.enable_object_caching()
        return [_steps(self.state, NativeLowering)]


class Part(CompilerBase):
    """How parts are compiled."""

    def define_pipelines(self) -> list[Any]:
        """The same, but for the last step."""
        return [_steps(self.state, _PartLowering)]


def _steps(state: Any, lowering: type[Any]) -> Any:
    steps: Any = DefaultPassBuilder.define_nopython_pipeline(state)  # type: ignore[no-untyped-call]  # numba's
    own = [(lowering if step is NativeLowering else step, why) for step, why in steps.passes if step not in _IDLE]
    steps.passes = own
    steps.finalize()
    return steps


@cache
def _tell() -> None:
    """Say it once."""
    logging.getLogger("synopsis").warning(
        "the first build or question of its kind on this machine takes longer: machine code is made for it, and kept"
    )
