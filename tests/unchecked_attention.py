"""The attention core as users import it, for compilers to look into.

While tests run, an import hook wraps every function of `infoset` to check the shapes of
its arguments, and torch's compiler cannot trace the wrappers. So the same files are
loaded once more, under a name that the hook does not know.
"""

import sys
from functools import cache
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

from infoset.models import attention

_NAME = "unchecked_attention_core"


@cache
def unchecked_attention() -> ModuleType:
    """Return a second copy of `infoset.models.attention`, with classes of its own."""
    file = Path(str(attention.__file__))
    spec = spec_from_file_location(
        _NAME, file, submodule_search_locations=[str(file.parent)]
    )
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    sys.modules[_NAME] = module
    spec.loader.exec_module(module)
    return module
