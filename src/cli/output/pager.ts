import type { Content, Output } from '../../text/output.ts';

interface PagerOptions {
  env: NodeJS.ProcessEnv;
  /** `--no-pager` makes this false. */
  wanted: boolean;
}

/**
 * Prints content on standard output, in a pager if a person watches: `OFFSITE_PAGER`, else `PAGER`, else
 * `less`, as git does. `less` ends at once if the content fits on the screen.
 */
export async function printPaged(
  out: Output,
  content: Content,
  { env, wanted }: PagerOptions,
): Promise<void> {
  const pager = env.OFFSITE_PAGER ?? env.PAGER ?? 'less';
  if (!out.isTerminal || !wanted || pager === '' || pager === 'cat') return out.print(content);
  const { execa } = await import('execa');
  // Ctrl-C belongs to the pager, which decides what it means.
  const ignore = () => undefined;
  process.on('SIGINT', ignore);
  try {
    const { exitCode } = await execa(pager, {
      shell: true,
      input: `${out.shown(content)}\n`,
      stdout: 'inherit',
      stderr: 'inherit',
      env: { LESS: env.LESS ?? 'FRX', LV: env.LV ?? '-c' },
      reject: false,
    });
    // The shell found no such program, or none that it may run.
    if (exitCode === 127 || exitCode === 126) out.print(content);
  } finally {
    process.off('SIGINT', ignore);
  }
}
