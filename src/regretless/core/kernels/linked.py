"""Kernels that other kernels call.

Numba compiles a function that another one calls as if Python called it too: with a wrapper that unpacks Python
objects, one for C, and machine code of all three, though the caller has the code linked into it. So a `Kernel` has two
forms. The one that Python calls is Numba's, less the wrapper for C. The one that kernels call, `Linked`, is code for
linking and nothing else, also in the disk cache. This takes 40 % off the time of compilation.

A linked kernel is optimised where it stands if it calls no other or may regroup sums, so that they are regrouped alike
wherever it is linked. Others are optimised once, as a part of the kernel that Python calls.

A shared kernel is not linked: it is compiled as if Python called it, and other kernels call its machine code, by a name
that LLVM is told the address of. This is for long kernels that many others call, where a call costs nothing measurable.
"""

from __future__ import annotations

import copy
import hashlib
from importlib import import_module
from typing import Any, NamedTuple

from llvmlite import binding
from numba.core import dispatcher, sigutils
from numba.core.caching import CompileResultCacheImpl
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler, CompileResult, Flags, compile_extra, compile_result
from numba.core.compiler_lock import global_compiler_lock
from numba.core.registry import CPUDispatcher

from regretless.core.kernels import compiling

# Numba has no types.
parse_bitcode: Any = binding.parse_bitcode
parse_assembly: Any = binding.parse_assembly
add_symbol: Any = binding.add_symbol
as_signature: Any = sigutils.normalize_signature
compiler_lock: Any = global_compiler_lock
compiled_by: Any = compile_extra
result_of: Any = compile_result
flags_for: Any = Flags
Library: Any = JITCodeLibrary
Dispatcher: Any = CPUDispatcher
FunctionCompiler: Any = dispatcher._FunctionCompiler  # type: ignore[attr-defined]


class LinkableLibrary(Library):
    """Code that is linked into other code. It has no address."""

    regroups = False  # whether its sums may be taken in any order

    def _optimize_final_module(self) -> None:
        if self.regroups or not any(isinstance(library, LinkableLibrary) for library in self._linking_libraries):
            super()._optimize_final_module()

    def _finalize_final_module(self) -> None:
        self._finalize_dynamic_globals()
        self._verify_declare_only_symbols()
        self._finalized = True

    @classmethod
    def from_bitcode(cls, codegen: Any, name: str, bitcode: bytes) -> LinkableLibrary:
        """What `serialize_using_bitcode` has written."""
        library = cls(codegen, name)
        library._final_module = parse_bitcode(bitcode)
        library._finalize_final_module()
        return library


class _Name:
    """What Numba knows a compiled function by, in place of a function that Python could call."""


class _ShownCompiler(FunctionCompiler):
    """Tells the user at the terminal that functions are compiled."""

    def compile(self, args: Any, return_type: Any) -> Any:
        with compiling.line.while_compiling():
            return super().compile(args, return_type)


class _KernelCompiler(_ShownCompiler):
    """Compiles for Python, without a wrapper for C."""

    def _customize_flags(self, flags: Any) -> Any:
        flags.no_cfunc_wrapper = True
        return flags


class _LinkableCompiler(_ShownCompiler):
    """Compiles for linking only."""

    def _compile_core(self, args: Any, return_type: Any) -> Any:
        flags = flags_for()
        self.targetdescr.options.parse_as_flags(flags, self.targetoptions)
        flags.no_cpython_wrapper = flags.no_cfunc_wrapper = flags.no_compile = True
        context = self.targetdescr.target_context
        library = LinkableLibrary(context.codegen(), self.py_func.__qualname__)
        library.regroups = "reassoc" in self.targetoptions["fastmath"]
        found = compiled_by(
            self.targetdescr.typing_context,
            context,
            self.py_func,
            args=args,
            return_type=return_type,
            flags=flags,
            locals=self.locals,
            library=library,
            pipeline_class=self.pipeline_class,
        )
        found.reload_init.extend(getattr(library, "_reload_init", ()))  # older versions of Numba have none
        named = found._replace(entry_point=_Name())
        context.insert_user_function(named.entry_point, named.fndesc, [library])
        return named


class Callee(NamedTuple):
    """Which kernel's machine code is called: its module, its name there, and the Numba types of the arguments."""

    module: str
    name: str
    kinds: Any

    def symbol(self) -> str:
        """The same in every process: machine code in the disk cache calls it by this name."""
        digest = hashlib.sha256(str(self.kinds).encode()).hexdigest()[:16]
        return f"shared.{self.module}.{self.name}.{digest}"

    def load(self) -> None:
        """Have the machine code ready."""
        import_module(self.module)
        _shared[self.module, self.name].linked.compile(self.kinds)


_shared: dict[tuple[str, str], Kernel] = {}
_callees: dict[str, Callee] = {}  # by symbol, those ready


def callees_of(library: Any) -> list[Callee]:
    """The shared kernels that some code calls."""
    names = [each.name for each in library._final_module.functions if each.is_declaration]
    return [_callees[name] for name in names if name in _callees]


class Linked(Dispatcher):
    """The form of a kernel that other kernels call."""

    def __init__(self, py_func: Any, locals: Any, targetoptions: Any, pipeline_class: Any) -> None:
        super().__init__(py_func, locals, targetoptions, pipeline_class)
        self._compiler = _LinkableCompiler(py_func, self.targetdescr, targetoptions, locals, pipeline_class)

    def add_overload(self, cres: Any) -> None:
        """As Numba does, but Python cannot call it."""
        self.overloads[tuple(cres.signature.args)] = cres


class Shared(Dispatcher):
    """The form of a shared kernel that other kernels call: its machine code, by name."""

    def __init__(self, kernel: Kernel) -> None:
        super().__init__(kernel.py_func, kernel.locals, kernel.targetoptions)
        self.kernel = kernel

    def compile(self, sig: Any) -> Any:
        """Have the kernel compiled for Python, and tell LLVM its address."""
        with compiler_lock:
            kinds = tuple(as_signature(sig)[0])
            if kinds not in self.overloads:
                self.kernel.compile(kinds)
                found = self.kernel.overloads[kinds]
                callee = Callee(self.py_func.__module__, self.py_func.__qualname__, kinds)
                symbol, description = callee.symbol(), copy.copy(found.fndesc)
                add_symbol(symbol, found.library.get_pointer_to_function(description.llvm_func_name))
                _callees[symbol], description.mangled_name = callee, symbol
                named = found._replace(entry_point=_Name(), fndesc=description)
                self.targetctx.insert_user_function(named.entry_point, description)
                self.overloads[kinds] = named
            return self.overloads[kinds].entry_point


class Kernel(Dispatcher):
    """A function that Python calls, and in another form (`linked`) other kernels."""

    def __init__(
        self, py_func: Any, locals: Any = None, targetoptions: Any = None, pipeline_class: Any = Compiler
    ) -> None:
        locals = {} if locals is None else locals  # older versions of Numba take no None
        super().__init__(py_func, locals, targetoptions, pipeline_class)
        self._compiler = _KernelCompiler(py_func, self.targetdescr, targetoptions, locals, pipeline_class)
        self.linked = Linked(py_func, locals, targetoptions, pipeline_class)

    def share(self) -> None:
        """Let other kernels call this one's machine code."""
        self.linked = Shared(self)
        _shared[self.py_func.__module__, self.py_func.__qualname__] = self

    @property
    def _numba_type_(self) -> Any:
        """The type of this function inside kernels."""
        return self.linked._type

    def add_overload(self, cres: Any) -> None:
        """As Numba does, and tells the code of linked kernels where their constants are."""
        for environment in cres._find_referenced_environments():
            cres.codegen.set_env(environment.env_name, environment)
        super().add_overload(cres)


class KernelCacheImpl(CompileResultCacheImpl):
    """Writes what `Kernel` compiles: machine code, without the code for linking, which other kernels have of `Linked`.

    Numba would read that code whenever it loads a kernel, and uses nothing but the names of its functions.
    """

    def reduce(self, cres: Any) -> Any:
        """What is written: empty functions in place of the code for linking."""
        (name, kind, (machine_code, _)), *rest = cres._reduce()
        defined = [each.name for each in cres.library._final_module.functions if not each.is_declaration]
        functions = parse_assembly("".join(f'define void @"{each}"() {{ ret void }}\n' for each in defined))
        return callees_of(cres.library), ((name, kind, (machine_code, functions.as_bitcode())), *rest)

    def rebuild(self, target_context: Any, payload: Any) -> Any:
        """What was written, as a compiled function."""
        callees, rest = payload
        for each in callees:
            each.load()
        return super().rebuild(target_context, rest)  # type: ignore[no-untyped-call]


class LinkableCacheImpl(CompileResultCacheImpl):
    """Writes and reads what `Linked` compiles."""

    def reduce(self, cres: Any) -> Any:
        """What is written: code for linking in place of machine code."""
        library = cres.library.serialize_using_bitcode()
        cres.fndesc.typemap = cres.fndesc.calltypes = None  # of no use any more, and not always picklable
        environments = cres._find_referenced_environments()  # where its code, and what is linked into it, has constants
        code = library, callees_of(cres.library)
        return code, cres.fndesc, cres.environment, cres.signature, cres.reload_init, environments

    def rebuild(self, target_context: Any, payload: Any) -> CompileResult:
        """What was written, as a compiled function."""
        ((name, _, bitcode), callees), fndesc, environment, signature, reload_init, environments = payload
        for load in (*reload_init, *(each.load for each in callees)):
            load()
        return result_of(
            target_context=target_context,
            typing_context=target_context.typing_context,
            library=LinkableLibrary.from_bitcode(target_context.codegen(), name, bitcode),
            environment=environment,
            entry_point=_Name(),
            fndesc=fndesc,
            signature=signature,
            objectmode=False,
            lifted=(),
            reload_init=reload_init,
            referenced_envs=environments,
        )
