import { readFileSync } from 'node:fs';
import { extname } from 'node:path';
import { ModuleConversation } from './module-conversation.ts';
import type { ValidatorRequest, ValidatorRun } from './validator.ts';

/** Our half of the validator's process: TypeScript in a checkout, JavaScript once built, as this file is. */
const extension = extname(import.meta.filename);
const ours = ['api', 'attempt', 'failure-text', 'host', 'logs', 'main', 'records', 'run', 'workspace'].map(
  (name) => ({
    name: `${name}${extension}`,
    content: readFileSync(new URL(`./sandboxed/${name}${extension}`, import.meta.url)),
  }),
);

/** A validator that is a module: Node runs it in the sandbox and prints a record for each of its validations. */
export async function runModule(request: ValidatorRequest): Promise<ValidatorRun> {
  const { container, folder, timeoutMs } = request;
  await container.put(filesOf(request), '/', request.signal);
  const conversation = new ModuleConversation(request);
  const result = await container.exec({
    argv: ['node', '--disable-warning=ExperimentalWarning', `${folder}/.offsite/main${extension}`],
    cwd: folder,
    env: { ...request.env, ...gitEnvironment },
    stdin: conversation.stdin,
    onOutput: (stream, bytes) => {
      if (stream === 'stdout') conversation.reader.push(bytes);
    },
    timeoutMs,
    signal: request.signal,
  });
  request.signal.throwIfAborted();
  return conversation.outcome(result);
}

/**
 * Settings for git that the repository's own cannot overrule. It refuses another user's repository, which the workspace is; and what
 * the agent wrote into its settings and hooks is not to run because somebody asks for its status.
 */
const git = { 'safe.directory': '*', 'core.fsmonitor': 'false', 'core.hooksPath': '/dev/null' };
const gitEnvironment = {
  GIT_CONFIG_COUNT: String(Object.keys(git).length),
  ...Object.fromEntries(
    Object.entries(git).flatMap(([key, value], index) => [
      [`GIT_CONFIG_KEY_${index}`, key],
      [`GIT_CONFIG_VALUE_${index}`, value],
    ]),
  ),
};

/** `offsite/validator` resolves because the validator lies in a package of that name. */
function filesOf({ folder, files, source, separate }: ValidatorRequest) {
  const description = {
    name: 'offsite',
    type: 'module',
    exports: { './validator': `./.offsite/api${extension}` },
  };
  // What the validator expects of the work is not for the work to read; see run.ts for what is.
  const mode = separate ? 0o600 : 0o644;
  return [
    { path: folder, folder: true as const, mode: separate ? 0o711 : 0o755 },
    ...files.map(({ path, content }) => ({ path: `${folder}/${path}`, content, mode })),
    { path: `${folder}/validator.mts`, content: source, mode },
    { path: `${folder}/package.json`, content: JSON.stringify(description) },
    ...ours.map(({ name, content }) => ({ path: `${folder}/.offsite/${name}`, content })),
  ];
}
