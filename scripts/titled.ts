/** Runs a part of a script between two lines that name it and say how it ended. */
export async function titled(title: string, work: () => Promise<number>): Promise<number> {
  console.log(`\n== ${title}`);
  const began = performance.now();
  const exitCode = await work();
  console.log(endOf(title, exitCode, performance.now() - began));
  return exitCode;
}

/** The line that says how a part of a script ended. */
export function endOf(title: string, exitCode: number, milliseconds: number): string {
  const how = exitCode === 0 ? 'ok' : `failed with exit code ${exitCode}`;
  return `== ${title}: ${how}, ${(milliseconds / 1000).toFixed(1)} s`;
}
