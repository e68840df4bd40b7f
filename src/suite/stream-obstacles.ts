import type { Profile } from './plan.ts';

/** A stream that the programs of a profile may print. */
export interface StreamOffer {
  name: string;
  /** Whether it always reports the commands that ran. */
  reportsCommands: boolean;
}

interface StreamSupport {
  harness: string;
  /** The streams that the harness reads. Empty if it reads its own only. */
  streams: readonly StreamOffer[];
  /** Why there is no model traffic to read. Undefined if there is. */
  noTraffic: string | undefined;
}

/** A problem with a key of a profile. */
export interface ProfileObstacle {
  key: 'stream' | 'trajectory';
  message: string;
}

/** The problems with what a profile says about its stream and its commands. */
export function streamObstacles(
  { stream, trajectory }: Pick<Profile, 'stream' | 'trajectory'>,
  { harness, streams, noTraffic }: StreamSupport,
): ProfileObstacle[] {
  const obstacles: ProfileObstacle[] = [];
  const report = (key: ProfileObstacle['key'], message: string) => obstacles.push({ key, message });
  if (streams.length === 0) {
    const message = `the ${harness} harness reports its commands in its own way; only command uses this`;
    if (stream !== undefined) report('stream', message);
    if (trajectory !== undefined) report('trajectory', message);
    return obstacles;
  }
  const offer = streams.find(({ name }) => name === stream);
  if (stream !== undefined && offer === undefined) {
    const names = streams.map(({ name }) => name).join(', ');
    report('stream', `${JSON.stringify(stream)} is not a stream that Offsite reads; known are ${names}`);
  }
  if (trajectory !== undefined && offer?.reportsCommands)
    report('trajectory', `the stream ${stream} reports the commands; remove stream or trajectory`);
  if (trajectory === 'wire' && noTraffic !== undefined)
    report('trajectory', `there is no model traffic to read commands from: ${noTraffic}`);
  return obstacles;
}
