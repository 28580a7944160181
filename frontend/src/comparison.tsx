/** Two results side by side, on the samples that both have. `for_programs.py` says what stands where. */

import { list, member, Num, shown, type Value } from "./json";
import { BASE } from "./server";
import { LongText, Text, Wide } from "./text";

/** A number that was computed here, as `aigo-bridge compare` shows it; those of the results keep all digits. */
function short(value: Value | undefined, signed = false): string {
  if (!(value instanceof Num)) return "–";
  const number = Number(value.value.toPrecision(4));
  return signed && number >= 0 ? `+${number}` : String(number);
}

function exact(value: Value | undefined): string {
  return value instanceof Num ? value.text : "–";
}

function probability(value: Value | undefined): string {
  if (!(value instanceof Num)) return "–";
  return value.value < 0.0001 ? "< 0.0001" : value.value.toFixed(4);
}

function interval(value: Value): string {
  const [low, high] = list(member(value, "interval"));
  return low === undefined ? "–" : `${short(low, true)} to ${short(high, true)}`;
}

function Side({ label, side }: { label: string; side: Value | undefined }) {
  return (
    <li><small>{label}</small> <a href={`${BASE}r/${shown(member(side, "entry"))}#result=${shown(member(side, "position"))}`}><Text>{shown(member(side, "name"))}</Text></a>
      {member(side, "run") === true && <small> the run has not ended: only what is there is compared</small>}</li>
  );
}

function sample(side: Value | undefined, id: Value | undefined): string {
  const names = new URLSearchParams({ sample: shown(id) });
  if (shown(member(side, "position")) !== "0") names.set("result", shown(member(side, "position")));
  return `${BASE}r/${shown(member(side, "entry"))}#${names}`;
}

function Answer({ side, id, text }: { side: Value | undefined; id: Value | undefined; text: Value | undefined }) {
  return <td><a href={sample(side, id)}>sample <Text>{shown(id)}</Text></a>{typeof text === "string" ? <LongText text={text} /> : <p class="note">no answer to show</p>}</td>;
}

function Flips({ metric, content }: { metric: Value; content: Value }) {
  const flips = member(metric, "flips"), flipped = list(member(metric, "flipped"));
  if (flips === null || flips === undefined) return null;
  const lost = exact(member(flips, "right_to_wrong")), gained = exact(member(flips, "wrong_to_right"));
  const more = Number(lost) + Number(gained) - flipped.length;
  const agreement = member(flips, "agreement"), kappa = member(flips, "kappa");
  return (
    <Wide label="samples that changed"><table>
      <caption><Text>{shown(member(metric, "label"))}</Text>: {lost} right → wrong, {gained} wrong → right; the same verdict in {agreement instanceof Num ? `${(agreement.value * 100).toFixed(1)}%` : "–"}
        {kappa instanceof Num && ` (Cohen's kappa ${short(kappa)})`}</caption>
      {flipped.length > 0 && <thead><tr><th scope="col">change</th><th scope="col">base</th><th scope="col">new</th></tr></thead>}
      <tbody>{flipped.map((flip) => (
        <tr><th scope="row">{shown(member(flip, "change"))}</th>
          <Answer side={member(content, "base")} id={member(flip, "base_id")} text={member(flip, "base_answer")} />
          <Answer side={member(content, "new")} id={member(flip, "new_id")} text={member(flip, "new_answer")} /></tr>
      ))}</tbody>
    </table>{more > 0 && <p class="note">and {more} more</p>}</Wide>
  );
}

export function ComparisonView({ content }: { content: Value }) {
  const differs = list(member(content, "differs")), metrics = list(member(content, "metrics"));
  const lost = list(member(content, "pairs", "lost"));
  const usage = Object.entries((member(content, "usage") as { [key: string]: Value } | null | undefined) ?? {});
  return (
    <>
      <ul class="plain"><Side label="base" side={member(content, "base")} /><Side label="new" side={member(content, "new")} /></ul>
      {differs.length === 0 ? <p>Nothing else differs: task, prompt, scorers, config, model, engine and version are the same.</p> : (
        <Wide label="what else differs"><table><caption>What else differs</caption>
          <thead><tr><th scope="col">what</th><th scope="col">where</th><th scope="col">base</th><th scope="col">new</th></tr></thead>
          <tbody>{differs.map((one) => (
            <tr>{["kind", "place", "base", "new"].map((name) => <td><LongText text={shown(member(one, name))} /></td>)}</tr>
          ))}</tbody></table></Wide>
      )}
      <p><b>{exact(member(content, "pairs", "paired"))}</b> samples are in both{shown(member(content, "pairs", "renumbered")) !== "0" && <>, {exact(member(content, "pairs", "renumbered"))} of them by their rows (other ids)</>}.
        {lost.map((one) => <div class="note"><Text>{`${shown(member(one, "count"))} ${shown(member(one, "reason"))}: ${list(member(one, "examples")).map(shown).join(", ")}`}</Text></div>)}</p>
      {metrics.length === 0 ? <p class="note">The results have no numbers to compare.</p> : (
        <Wide label="numbers"><table class="metrics"><caption>Numbers</caption>
          <thead><tr><th scope="col">metric</th>{["base", "new", "difference", "95 % interval", "p", "p (Holm)", "effect", "pairs"].map((name) => <th scope="col" class="number">{name}</th>)}</tr></thead>
          <tbody>{metrics.map((metric) => {
            const reason = member(metric, "reason"), test = member(metric, "test");
            const unpaired = member(metric, "unpaired");
            return (
              <tr><th scope="row"><Text>{shown(member(metric, "label"))}</Text> <small><Text>{shown(member(metric, "scorer") ?? "")}</Text></small>
                  {typeof reason === "string" && <div class="note"><Text>{reason}</Text></div>}
                  {typeof test === "string" && <div class="note"><Text>{test}</Text></div>}
                  {unpaired instanceof Num && unpaired.value > 0 && <div class="note">{unpaired.text} samples are in this number of one result alone, and left out</div>}</th>
                <td class="number">{exact(member(metric, "base"))}</td><td class="number">{exact(member(metric, "new"))}</td>
                <td class="number value">{short(member(metric, "difference"), true)}</td><td class="number">{interval(metric)}</td>
                <td class="number">{probability(member(metric, "p_value"))}</td><td class="number">{probability(member(metric, "p_value_holm"))}</td>
                <td class="number">{short(member(metric, "effect"))}{typeof member(metric, "effect_name") === "string" && <div><small>{shown(member(metric, "effect_name"))}</small></div>}</td><td class="number">{exact(member(metric, "pairs"))}</td></tr>
            );
          })}</tbody></table></Wide>
      )}
      {usage.map(([name, one]) => <p>{name === "total_tokens" ? "tokens" : "seconds"} per sample: {short(member(one, "difference"), true)} ({interval(one)})</p>)}
      {metrics.map((metric) => <Flips metric={metric} content={content} />)}
    </>
  );
}
