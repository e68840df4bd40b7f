import { readFileSync } from 'node:fs';
import { extname } from 'node:path';
import { ModuleConversation } from './module-conversation.ts';
import { runProgram } from './program.ts';
import { judgmentWithoutContent, withoutContent } from './record.ts';
import { execUser, ownFile, ownFolders, users, validatorFolder } from './validator-folder.ts';
import type { ValidatorRequest, ValidatorRun } from './validator-request.ts';
import { Work } from './work/work.ts';
import { validatorGit } from './workspace-copy.ts';

/**
 * Runs a validator in a sandbox. A source with a shebang runs as a program, and its exit code decides. Any
 * other source is a JavaScript or TypeScript module that declares named validations with `offsite/validator`.
 */
export async function runValidator(request: ValidatorRequest): Promise<ValidatorRun> {
  const asked = { ...request, env: { ...request.env, ...validatorGit } };
  const run = request.source.startsWith('#!') ? await runProgram(asked) : await runModule(asked);
  if (request.capture) return run;
  const { validations, judgments, failure } = run;
  return {
    validations: validations.map(withoutContent),
    judgments: judgments.map(judgmentWithoutContent),
    // The question is not kept.
    failure: failure && { ...failure, output: undefined },
  };
}

/**
 * The part of the validator's process that Offsite provides. It is TypeScript in a checkout and JavaScript
 * after a build, like this file.
 */
const extension = extname(new URL(import.meta.url).pathname);
const sandboxed = ['api', 'attempt', 'host', 'main'].map((name) => `validate/sandboxed/${name}${extension}`);
const ours = [...sandboxed, `bounds/channel${extension}`, `bounds/grading${extension}`].map((path) => ({
  path,
  content: readFileSync(new URL(`../${path}`, import.meta.url)),
}));

/**
 * Runs a validator that is a module. Node runs it in the sandbox and prints a record for each of its
 * validations.
 */
async function runModule(request: ValidatorRequest): Promise<ValidatorRun> {
  const { container, folder, timeoutMs } = request;
  await container.put(filesOf(request), '/', request.signal);
  const failed = new AbortController();
  const signal = AbortSignal.any([request.signal, failed.signal]);
  const work = new Work({ ...request, sandbox: request.work, signal });
  await work.begin();
  using conversation = new ModuleConversation({ ...request, signal }, work, (error) => failed.abort(error));
  const result = await container.exec({
    argv: [
      request.node ?? 'node',
      '--disable-warning=ExperimentalWarning',
      `${folder}/.offsite/validate/sandboxed/main${extension}`,
    ],
    user: execUser(users.validator),
    cwd: folder,
    env: { ...request.env, ...ownFolders(folder) },
    stdin: conversation.stdin,
    onOutput: (stream, bytes) => {
      if (stream === 'stdout') conversation.reader.push(bytes);
    },
    timeoutMs,
    signal,
  });
  signal.throwIfAborted();
  const outcome = await conversation.outcome(result);
  // No caller waits for the programs that still run.
  failed.abort();
  return outcome;
}

/** `offsite/validator` resolves because the validator is in a package named `offsite`. */
function filesOf({ folder, files, source }: ValidatorRequest) {
  const description = {
    name: 'offsite',
    type: 'module',
    exports: { './validator': `./.offsite/validate/sandboxed/api${extension}` },
  };
  return [
    ...validatorFolder(folder),
    ...files.map(({ path, content }) => ownFile(`${folder}/${path}`, content)),
    ownFile(`${folder}/validator.mts`, source),
    // Node reads this file if the work is started with a source file beside it. It says nothing about
    // expected results.
    ownFile(`${folder}/package.json`, JSON.stringify(description), 0o644),
    ...ours.map(({ path, content }) => ownFile(`${folder}/.offsite/${path}`, content)),
  ];
}
