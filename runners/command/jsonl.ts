import { endedBySignal } from '../../src/harness/cli-ending.ts';
import type { LineTaker, StreamReader } from '../../src/harness/cli-stream.ts';
import { modelFailure } from '../../src/harness/model-failure.ts';
import type { TurnRecord, TurnStatus } from '../../src/harness/turn-record.ts';
import { StreamLine } from '../../src/suite/stream-line.ts';

type Result = Omit<LineOf<'result'>, 'type' | 'id'>;
type LineOf<Type extends StreamLine['type']> = Extract<StreamLine, { type: Type }>;

const known: ReadonlySet<unknown> = new Set(StreamLine.options.map(({ shape }) => shape.type.value));

/** The stream of a program that says what it does in Offsite's own lines. */
export const jsonlStream: StreamReader = {
  takerFor: jsonlLines,
  // The program need not say how it ended, unless something killed it.
  statusOfExit: (exitCode) => (endedBySignal.has(exitCode) ? undefined : { kind: 'done' }),
};

function jsonlLines(record: TurnRecord): LineTaker {
  let unnamed = 0;
  /** A key for the record, so that no name of the program equals one of ours. */
  const keyOf = (id: string | undefined) => {
    if (id !== undefined) return `named ${id}`;
    unnamed += 1;
    return `unnamed ${unnamed}`;
  };
  return (source, at) => {
    if (!known.has(source.type)) return;
    const line = StreamLine.parse(source);
    switch (line.type) {
      case 'session':
        record.version = line.version ?? record.version;
        return;
      case 'command': {
        const key = keyOf(line.id);
        record.beginCommand(key, line.command, hasResult(line) ? undefined : at, line.startedAt);
        if (hasResult(line)) takeResult(record, key, line, at);
        return;
      }
      case 'tool': {
        const key = keyOf(line.id);
        record.beginTool(key, line.name, line.input, hasResult(line) ? undefined : at, line.startedAt);
        if (hasResult(line)) takeResult(record, key, line, at);
        return;
      }
      case 'result':
        return takeResult(record, keyOf(line.id), line, at);
      case 'message':
        return record.message(line.text, at, line.at);
      case 'note':
        return record.note(line.text, at, line.at);
      case 'usage': {
        const { type: _, ...usage } = line;
        return record.addUsage({ ...usage, totalTokens: usage.inputTokens + usage.outputTokens });
      }
      case 'end':
        record.status = statusOf(line);
    }
  };
}

function takeResult(record: TurnRecord, key: string, line: Result, at: number): void {
  const end = { at, own: line.finishedAt, output: line.output };
  if (record.openCommand(key) === undefined) record.endTool(key, { ...end, failed: line.failed });
  else record.endCommand(key, { ...end, exitCode: line.exitCode, truncated: line.outputTruncated });
}

/** Whether a line about a command or a tool also says how it ended. */
function hasResult({ id, finishedAt, exitCode, output, failed }: LineOf<'command' | 'tool'>): boolean {
  return id === undefined || [finishedAt, exitCode, output, failed].some((part) => part !== undefined);
}

function statusOf({ status, message }: LineOf<'end'>): TurnStatus {
  switch (status) {
    case 'done':
      return { kind: 'done' };
    case 'failed':
      return { kind: 'agent-failed', message: message ?? 'the program says that it failed' };
    case 'model-failed':
      return modelFailure(message ?? 'the program says that its model failed');
  }
}
