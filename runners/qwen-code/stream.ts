import { z } from 'zod';
import type { LineTaker } from '../../src/harness/cli-stream.ts';
import { type CommandOutcome, type CommandResult, messageLines } from '../../src/harness/message-lines.ts';
import { gaveUpOver } from '../../src/harness/model-failure.ts';
import type { Told, TurnRecord } from '../../src/harness/turn-record.ts';

const System = z.looseObject({ subtype: z.string() });
const Init = z.object({ session_id: z.string(), qwen_code_version: z.string().optional() });
const Result = z.object({
  is_error: z.boolean(),
  subtype: z.string(),
  error: z.object({ message: z.string() }).optional(),
  usage: z.object({
    input_tokens: z.number(),
    output_tokens: z.number(),
    cache_read_input_tokens: z.number().optional(),
    total_tokens: z.number().optional(),
  }),
});

/** `qwen --output-format stream-json`: the lines of Claude Code, with other contents. No times. */
export function qwenCodeLines(record: TurnRecord): LineTaker {
  const takeMessage = messageLines(record, 'run_shell_command', outcomeOf);
  return (line, at) => {
    switch (line.type) {
      case 'system': {
        if (System.parse(line).subtype !== 'init') return;
        const init = Init.parse(line);
        record.begin(init.session_id);
        record.version = init.qwen_code_version ?? record.version;
        return;
      }
      case 'assistant':
      case 'user':
        return takeMessage(line, at);
      case 'result': {
        const result = Result.parse(line);
        record.usage = usageOf(result.usage);
        record.told = toldBy(result);
      }
    }
  };
}

/** How its messages begin where the model's API failed; nothing else tells that apart. */
const API_ERROR = '[API Error';

function toldBy({ is_error, error, subtype }: z.infer<typeof Result>): Told {
  if (!is_error) return { told: 'done' };
  const message = error?.message ?? subtype;
  return message.startsWith(API_ERROR) ? gaveUpOver(message) : { told: 'agent-failed', message };
}

/** 128 + the signal, as a shell has it. */
const SIGNAL_BASE = 128;

/**
 * A command that prints and exits with 0 is told by its output alone; any other by a block of labelled lines, of which `Output` may
 * be many.
 */
function outcomeOf({ command, text, failed }: CommandResult): CommandOutcome {
  const start = text.indexOf(`Command: ${command}\nDirectory: `);
  const end = /\nError: (?:(?!\nExit Code: )[\s\S])*\nExit Code: (\S+)\nSignal: (\S+)(?:\n[^\n]*)*$/.exec(
    text,
  );
  const isBlock = start !== -1 && end !== null && (failed || start === 0);
  if (!isBlock) {
    const truncated = /\nOutput too long and was saved to: [^\n]*$/.test(text);
    return failed ? { output: text } : { exitCode: 0, output: text, truncated };
  }
  const label = '\nOutput: ';
  const output = text.slice(text.indexOf(label, start) + label.length, end.index);
  return {
    exitCode: exitCodeOf(end[1], end[2]),
    output: output === '(empty)' ? '' : output,
    truncated: start > 0,
  };
}

function exitCodeOf(code: string | undefined, signal: string | undefined): number | undefined {
  const number = Number(signal);
  // It says 0 of a command that was killed.
  if (Number.isInteger(number) && number > 0) return SIGNAL_BASE + number;
  return code !== undefined && /^\d+$/.test(code) ? Number(code) : undefined;
}

function usageOf(usage: z.infer<typeof Result>['usage']): TurnRecord['usage'] {
  return {
    inputTokens: usage.input_tokens,
    outputTokens: usage.output_tokens,
    totalTokens: usage.total_tokens ?? usage.input_tokens + usage.output_tokens,
    ...(usage.cache_read_input_tokens !== undefined && { cacheReadTokens: usage.cache_read_input_tokens }),
  };
}
