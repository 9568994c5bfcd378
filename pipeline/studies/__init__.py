"""Studies that anybody can rerun: questions about the method, not about one data set."""

from .kernel_study import KernelStudyRun, run_kernel_study

__all__ = ["KernelStudyRun", "run_kernel_study"]
