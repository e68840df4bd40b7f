/** Runs a part of a script between two lines that name it and say how it ended. */
export async function titled(title: string, work: () => Promise<number>): Promise<number> {
  console.log(`\n== ${title}`);
  const began = performance.now();
  const exitCode = await work();
  const seconds = ((performance.now() - began) / 1000).toFixed(1);
  console.log(`== ${title}: ${exitCode === 0 ? 'ok' : `failed with exit code ${exitCode}`}, ${seconds} s`);
  return exitCode;
}
