import type { TrialPage } from '../../model/shapes.ts';
import { line } from '../parts/foreign.ts';
import { duration, when } from '../parts/quantities.ts';
import { addressOf } from '../router.ts';

/** The attempts of a trial, with what ended each. */
export function Attempts({ page }: { page: TrialPage }) {
  const { attempts, trial } = page;
  if (attempts.length === 0) return <p class="notice">No attempt has begun.</p>;
  return (
    <div class="scroll-pane">
      <ol class="attempts">
        {attempts.map(({ number, startedAt, endedAt, ending, cause, hasRecord }) => (
          <li key={number}>
            <b>Attempt {number}</b> <span class="tag">{line(ending ?? 'in progress')}</span>{' '}
            {cause && <span class="tag">{line(cause.kind)}</span>}{' '}
            <span class="dim">
              {when(startedAt)}
              {endedAt !== undefined && ` · ${duration(endedAt - startedAt)}`}
            </span>
            {cause && (
              <p>
                {line(cause.phase)}: {line(cause.message)}
              </p>
            )}
            {hasRecord && (
              <p>
                <a href={addressOf(`/trial/${trial.key}`, { attempt: String(number) })}>Show what it found</a>
              </p>
            )}
          </li>
        ))}
      </ol>
    </div>
  );
}
