import type { Bench } from '../../setup/models/bench-model.ts';
import { ours, type Printable, stack, text } from '../../text/printable.ts';
import { duration } from '../../text/quantities.ts';
import { table } from '../../text/table.ts';

/** The widest bar, in terminal cells. */
const widest = 30;

/** The measured levels with a bar for the throughput of each, and what `maxParallel` should be. */
export function benchReport({ levels, recommendation, configured, used }: Bench): Printable {
  const most = Math.max(...levels.map(({ tokensPerSecond }) => tokensPerSecond));
  const titles = [
    'parallel',
    'tokens/s',
    'each',
    'first p50',
    'first p95',
    'answer p50',
    '429',
    'errors',
    '',
  ];
  const rows = levels.map((level) => [
    level.parallel,
    `${level.estimated ? '~' : ''}${level.tokensPerSecond.toFixed(1)}`,
    level.requestTokensPerSecond?.toFixed(1) ?? '–',
    duration(level.firstTokenP50),
    duration(level.firstTokenP95),
    duration(level.latencyP50),
    level.limited,
    level.failed,
    ours('█'.repeat(Math.round((widest * level.tokensPerSecond) / most) || 0)),
  ]);
  const columns = titles.map((title, index) => ({
    title,
    align: index === titles.length - 1 ? ('left' as const) : ('right' as const),
  }));
  const failures = levels.flatMap(({ parallel, failure }) =>
    failure === undefined ? [] : [text`first failure at ${parallel}: ${failure}`],
  );
  const tokens = text`${used.inputTokens} tokens in, ${used.outputTokens} out, in ${used.requests} answers`;
  return stack([table(columns, rows), ...failures, tokens, advice(recommendation, configured)]);
}

function advice({ maxParallel, why }: Bench['recommendation'], configured: Bench['configured']): Printable {
  if (maxParallel === undefined) return text`no maxParallel can be recommended: ${why}`;
  const now =
    configured === undefined
      ? 'it is not set'
      : configured === maxParallel
        ? 'as it is set'
        : `it is set to ${typeof configured === 'number' ? configured : `auto, up to ${configured.most}`}`;
  return text`recommended: maxParallel: ${maxParallel} (${ours(now)}), because ${why}`;
}
