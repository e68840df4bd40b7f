import { dirname, resolve } from 'node:path';
import { messageOf, OffsiteError } from '../offsite-error.ts';
import type { KnownKeys } from '../redaction/known-keys.ts';
import type { Config } from './config-file.ts';
import { BadFile } from './file-issues.ts';
import { FileReader } from './file-reader.ts';
import { type Profile, profileOf } from './plan.ts';
import type { Text } from './text-source.ts';

/**
 * Loads a profile of the configuration and reads its scripts and files. They may be anywhere, because the
 * author of the configuration owns the machine. Throws {@link BadFile} if one cannot be read.
 *
 * @param keys keys that its files may not contain
 */
export function loadProfile(name: string | undefined, config: Config, keys?: KnownKeys): Profile {
  const source = name === undefined ? undefined : config.profiles[name];
  if (!source || config.file === undefined) return profileOf({ name });
  const folder = dirname(config.file);
  const reader = new FileReader({ reach: 'anywhere', keys });
  const reading = <Result>(part: string[], read: () => Result): Result => {
    try {
      return read();
    } catch (error) {
      throw unreadable(config, ['profiles', name ?? '', ...part], error);
    }
  };
  const text = (part: Text | undefined, key: string) =>
    typeof part === 'object' ? reading([key], () => reader.text(resolve(folder, part.file))) : part;
  return {
    name,
    install: text(source.install, 'install'),
    run: text(source.run, 'run'),
    stream: source.stream,
    trajectory: source.trajectory,
    version: source.version,
    args: source.args ?? [],
    env: source.env ?? {},
    files: [
      ...Object.entries(source.files ?? {}).map(([path, file]) => ({
        path,
        content: reading(['files', path], () => reader.file(resolve(folder, file)).content),
      })),
      ...Object.entries(source.folders ?? {}).flatMap(([target, beside]) =>
        reading(['folders', target], () => reader.folder(resolve(folder, beside), target)).map(
          ({ path, content, isExecutable }) => ({ path, content, mode: isExecutable ? 0o755 : 0o644 }),
        ),
      ),
    ],
    mcpServers: source.mcpServers ?? {},
    maxTurns: source.maxTurns,
    ...(source.tellDeadline && { tellDeadline: true }),
  };
}

function unreadable({ issue, file }: Config, path: string[], error: unknown): unknown {
  if (error instanceof BadFile) return error;
  const message = messageOf(error);
  if (issue) return new BadFile([issue(path, message)]);
  return new OffsiteError(`${file}: ${path.join('.')}: ${message}`, {
    code: 'FILE_UNREADABLE',
    kind: 'input',
    cause: error,
  });
}
