import { randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { extname } from 'node:path';
import type { ReportedValidation } from '../contract/validation.ts';
import type { ExecResult } from '../engine/exec/exec-request.ts';
import { matchManifest } from './manifest.ts';
import type { SandboxedOrder, SandboxedRecord } from './sandboxed/records.ts';
import { captured } from './texts.ts';
import { type GradingTrouble, processTrouble } from './trouble.ts';
import type { ValidatorRequest, ValidatorRun } from './validator.ts';

/** Our half of the validator's process: TypeScript in a checkout, JavaScript once built, as this file is. */
const extension = extname(import.meta.filename);
const ours = ['api', 'main', 'records'].map((name) => ({
  name: `${name}${extension}`,
  content: readFileSync(new URL(`./sandboxed/${name}${extension}`, import.meta.url)),
}));

/** Records are read from the output as it was captured, so that all must fit. */
const recordBytes = 64 * 1024 ** 2;

/** A validator that is a module: Node runs it in the sandbox and prints a record for each of its validations. */
export async function runModule(request: ValidatorRequest): Promise<ValidatorRun> {
  const { container, folder, timeoutMs } = request;
  const nonce = randomBytes(16).toString('hex');
  await container.put(filesOf(request), '/', request.signal);
  const order: SandboxedOrder = {
    nonce,
    validator: `${folder}/validator.mts`,
    workspace: request.workspace,
    variables: request.variables,
    trajectory: [...request.trajectory],
  };
  const result = await container.exec({
    argv: ['node', '--disable-warning=ExperimentalWarning', `${folder}/.offsite/main${extension}`],
    cwd: folder,
    env: request.env,
    stdin: JSON.stringify(order),
    capBytes: recordBytes,
    timeoutMs,
    signal: request.signal,
  });
  request.signal.throwIfAborted();
  const { records, rest } = readRecords(result.stdout.text, nonce);
  const { found, missing } = matchManifest(
    records.filter((record) => record.kind === 'validation').map(recorded),
    request.manifest,
  );
  const output = `${rest}${result.stderr.text}`.trim();
  const trouble = processTrouble(result, timeoutMs) ?? troubleOf(result, records, missing);
  return { validations: found, trouble: trouble && { output, ...trouble } };
}

/** What is wrong with a validator that was run and ended by itself. */
function troubleOf(
  result: ExecResult,
  records: readonly SandboxedRecord[],
  missing: readonly string[],
): GradingTrouble | undefined {
  const broken = records.find((record) => record.kind === 'broken');
  if (broken) return { kind: 'broken', message: 'the validator could not be loaded', output: broken.message };
  if (result.stdout.truncated)
    return { kind: 'broken', message: `the validator printed more than ${recordBytes} bytes` };
  if (!records.some((record) => record.kind === 'end'))
    return { kind: 'broken', message: `the validator exited with ${result.exitCode} before its end` };
  if (missing.length === 0) return undefined;
  const message = `the validator never declared what its manifest names: ${missing.join(', ')}`;
  return { kind: 'broken', message };
}

/** `offsite/validator` resolves because the validator lies in a package of that name. */
function filesOf({ folder, files, source }: ValidatorRequest) {
  const description = {
    name: 'offsite',
    type: 'module',
    exports: { './validator': `./.offsite/api${extension}` },
  };
  return [
    ...files.map(({ path, content }) => ({ path: `${folder}/${path}`, content })),
    { path: `${folder}/validator.mts`, content: source },
    { path: `${folder}/package.json`, content: JSON.stringify(description) },
    ...ours.map(({ name, content }) => ({ path: `${folder}/.offsite/${name}`, content })),
  ];
}

function readRecords(stdout: string, nonce: string): { records: SandboxedRecord[]; rest: string } {
  const records: SandboxedRecord[] = [];
  const rest: string[] = [];
  for (const line of stdout.split('\n')) {
    const record = line.startsWith(`${nonce} `) ? parsed(line.slice(nonce.length + 1)) : undefined;
    if (record) records.push(record);
    else rest.push(line);
  }
  return { records, rest: rest.join('\n') };
}

/** Undefined for a record that was cut: by the end of its process, or where more was printed than is kept. */
function parsed(json: string): SandboxedRecord | undefined {
  try {
    return JSON.parse(json) as SandboxedRecord;
  } catch (error) {
    if (error instanceof SyntaxError) return undefined;
    throw error;
  }
}

type ValidationRecord = Extract<SandboxedRecord, { kind: 'validation' }>;

function recorded(record: ValidationRecord): Omit<ReportedValidation, 'id' | 'index'> {
  const output = record.output === undefined ? undefined : captured(record.output);
  const error = record.error === undefined ? undefined : captured(record.error);
  return {
    name: record.name,
    startedAt: record.startedAt,
    durationMs: record.durationMs,
    exitCode: record.passed ? 0 : 1,
    truncated: record.logsCut || output?.truncated === true || error?.truncated === true,
    ...(record.message !== undefined && { message: captured(record.message).text }),
    ...(output && { output }),
    ...(error && { error }),
    logs: record.logs.map(({ at, text }, index) => ({ index, at, value: captured(text) })),
  };
}
