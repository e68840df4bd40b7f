import { taskDigests } from '../../bounds/tasks.ts';
import type { Container } from '../../engine/container.ts';
import type { CaseTests } from '../../suite/case-tests.ts';
import { TrialFailure } from '../failure.ts';

/**
 * Puts a case's tests into a sandbox in which nothing runs. The folders that they need are emptied first by
 * the engine, without any program of the sandbox: a file replaces the folder and all that is in it, or the
 * link in its place, and a new folder then replaces the file. Throws a {@link TrialFailure} if something of
 * the agent's is left there.
 */
export async function putTests(
  container: Container,
  { files, emptied }: Pick<CaseTests, 'files' | 'emptied'>,
  signal: AbortSignal,
): Promise<void> {
  const above = new Set(emptied.flatMap(foldersAbove));
  await container.put(
    [
      ...[...above].map((path) => ({ path, folder: true as const })),
      ...emptied.flatMap((path) => [
        { path, content: '' },
        // Tests may run as another user than root.
        { path, folder: true as const, mode: 0o777 },
      ]),
      ...files,
    ],
    '/',
    signal,
  );
  const ours = new Set(files.map(({ path }) => path));
  for (const folder of emptied) {
    for await (const { path, type } of container.archive(folder, signal, taskDigests.bytes.files)) {
      const whole = path === '' ? folder : `${folder}/${path}`;
      if (type !== 'folder' && !ours.has(whole)) throw notEmptied(whole);
    }
  }
}

/** `/logs` for `/logs/verifier`. */
export function foldersAbove(path: string): string[] {
  const parts = path.split('/').slice(1, -1);
  return parts.map((_, index) => `/${parts.slice(0, index + 1).join('/')}`);
}

function notEmptied(path: string): TrialFailure {
  return new TrialFailure({
    kind: 'infrastructure',
    phase: 'validate',
    message: `the engine left ${JSON.stringify(path)} in a folder that was to hold only the tests`,
  });
}
