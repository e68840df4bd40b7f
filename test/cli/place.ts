import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { stringify } from 'yaml';

/** A user's machine of its own: a home, a project folder with suite and configuration, and a data folder. */
export interface Place extends Disposable {
  folder: string;
  dataFolder: string;
  /** Writes a file below the project folder and returns its path. */
  write(name: string, content: string | Uint8Array): string;
  /**
   * Writes suite.yaml and offsite.yaml and returns the suite's path. Missing parts are the smallest that
   * work.
   */
  suite(parts: SuiteParts): string;
}

interface SuiteParts {
  cases: Record<string, unknown>[];
  variants?: Record<string, unknown>[];
  trials?: number;
  judges?: string[];
  /** The `run` script of the profile `worker`, which the one variant has unless others are given. */
  run?: string;
  sandbox?: Record<string, unknown>;
  config?: Record<string, unknown>;
}

export function openPlace(): Place {
  const folder = mkdtempSync(join(tmpdir(), 'offsite-cli-'));
  const write = (name: string, content: string | Uint8Array) => {
    const path = join(folder, 'project', name);
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, content);
    return path;
  };
  return {
    folder,
    dataFolder: join(folder, 'data'),
    write,
    suite({ cases, variants, trials = 1, judges, run = 'eval "$act"', sandbox = {}, config = {} }) {
      const profiles = { worker: { run } };
      const sandboxes = { local: { memory: '256m', ...sandbox } };
      write('offsite.yaml', stringify({ profiles, sandboxes, ...config }));
      const suite = { id: 'small', prompt: 'Do it.' };
      const worker = { name: 'worker', model: 'none', harness: 'command', profile: 'worker' };
      return write(
        'suite.yaml',
        stringify({ suite, trials, variants: variants ?? [worker], cases, ...(judges && { judges }) }),
      );
    },
    [Symbol.dispose]: () => rmSync(folder, { recursive: true, force: true }),
  };
}
