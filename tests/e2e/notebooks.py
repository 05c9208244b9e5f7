"""Notebooks that a real kernel executes."""

import nbclient
from jupyter_client.kernelspec import NoSuchKernel
from nbformat import v4

from tests.capture.running import environment
from tests.kit import *


def executed(folder: Path, *cells: str, last: Sequence[str] = ()) -> Any:
    """Return a notebook that a real kernel has executed in this folder, up to the first of the last that fails."""
    notebook = v4.new_notebook(cells=[v4.new_code_cell(cell) for cell in (*cells, *last)])  # type: ignore[no-untyped-call] # nbformat has no types here
    for cell in notebook.cells[: len(cells)]:
        cell.metadata["tags"] = ["raises-exception"]
    client = nbclient.NotebookClient(
        notebook, timeout=300, kernel_name="python3", resources={"metadata": {"path": str(folder)}}
    )
    try:
        client.execute(env=environment(JUPYTER_PLATFORM_DIRS="1", IPYTHONDIR=str(folder / "ipython")))
    except (NoSuchKernel, nbclient.exceptions.DeadKernelError) as error:
        pytest.skip(f"no kernel can start here: {error}")
    except nbclient.exceptions.CellExecutionError as error:
        notebook.metadata["failed"] = error.ename
    return notebook


def frames(cell: Any) -> list[str]:
    """Return the pages that a cell shows."""
    pages = (output.get("data", {}).get("text/html", "") for output in cell.outputs)
    return [page for page in pages if page.startswith("<iframe")]
