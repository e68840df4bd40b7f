import { CREATED_LABEL, INSTANCE_LABEL, OWNED_LABEL, ROLE_LABEL } from '../../../engine/labels.ts';
import { plural } from '../../output/quantities.ts';
import { engineCheck } from '../check.ts';

/** Milliseconds an agent is given to bring its marker up; see the engine's sweep. */
const graceMs = 60_000;

/** Containers whose agent is gone. The next run sweeps them; nothing needs to be done. */
export const leftovers = engineCheck('leftovers', async (engine, { clock, signal }) => {
  const listed = await engine.docker.listContainers({
    all: true,
    filters: { label: [OWNED_LABEL] },
    abortSignal: signal,
  });
  const living = new Set(
    listed
      .filter(({ Labels, State }) => Labels[ROLE_LABEL] === 'marker' && State === 'running')
      .map(({ Labels }) => Labels[INSTANCE_LABEL]),
  );
  const dead = listed.filter(
    ({ Labels, Created }) =>
      !living.has(Labels[INSTANCE_LABEL] ?? '') &&
      clock.now() - Number(Labels[CREATED_LABEL] ?? Created * 1000) > graceMs,
  );
  if (dead.length === 0) {
    return {
      state: 'ok',
      found: `nothing of dead agents; ${plural(living.size, 'living agent')} on this engine`,
    };
  }
  const found = `${plural(dead.length, 'container')} of agents that are gone`;
  return { state: 'warn', found, mend: 'The next run removes them; to do so now: offsite clean' };
});
