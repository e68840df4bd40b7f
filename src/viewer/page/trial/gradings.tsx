import type { LaterGrading } from '../../../record/later-grading.ts';
import type { TrialPage } from '../../model/shapes.ts';
import { line } from '../parts/foreign.ts';
import { when } from '../parts/quantities.ts';

/** The later gradings of a trial, newest first, each beside the first one. */
export function Gradings({ page }: { page: TrialPage }) {
  const first = page.trial.verdict ?? 'void';
  return (
    <div class="scroll-pane">
      {page.gradings.toReversed().map((grading) => (
        <Grading key={grading.gradedAt} grading={grading} first={first} />
      ))}
    </div>
  );
}

function Grading({ grading, first }: { grading: LaterGrading; first: string }) {
  const { gradedAt, verdict, suite, notes, cause, checks, unreadable } = grading;
  return (
    <section class="grading" aria-label={`Grading of ${when(gradedAt)}`}>
      <p>
        <b>{when(gradedAt)}</b> <span class="tag">{first}</span> <span aria-hidden="true">→</span>{' '}
        <span class="tag">{verdict}</span>{' '}
        <span class="dim">{suite === undefined ? 'as the batch was planned' : `by ${line(suite)}`}</span>
      </p>
      {cause && (
        <p>
          {line(cause.kind)}, in {line(cause.phase)}: {line(cause.message)}
        </p>
      )}
      {unreadable !== undefined && <p role="alert">{line(unreadable)}</p>}
      {notes.map((note) => (
        <p key={note} class="note">
          {line(note)}
        </p>
      ))}
      {checks.length > 0 && (
        <table>
          <thead>
            <tr>
              <th scope="col">Check</th>
              <th scope="col">In the trial</th>
              <th scope="col">Graded again</th>
            </tr>
          </thead>
          <tbody>
            {checks.map(({ kind, name, was, now, changed }, index) => (
              <tr key={index}>
                <td>
                  <span class="dim">{kind}</span> {changed ? <b>{line(name)}</b> : line(name)}
                </td>
                <td>{line(was ?? 'none')}</td>
                <td>{line(now ?? 'none')}</td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
    </section>
  );
}
