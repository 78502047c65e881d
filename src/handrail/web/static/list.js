// A list that draws only the rows in sight. Rows may have any height; heights are measured when they are drawn.
import { h } from "./dom.js";

export class VirtualList {
  constructor({ count, row, estimate = 32, label, follow = false, onview }) {
    Object.assign(this, { count, row, estimate, follow, onview });
    this.heights = [];
    this.tops = [0];
    this.drawn = new Map();
    this.at = 0;
    this.inner = h("div", { class: "vlist-inner", role: "presentation" });
    this.node = h("div", { class: "vlist", role: "list", tabindex: "0", "aria-label": label }, this.inner);
    this.node.addEventListener("scroll", () => this.schedule(), { passive: true });
    this.node.addEventListener("keydown", (event) => this.key(event));
    this.node.addEventListener("focusin", (event) => this.focused(event));
    this.sizes = new ResizeObserver((seen) => this.measure(seen));
    this.sizes.observe(this.node);
  }

  close() {
    this.sizes.disconnect();
  }

  schedule() {
    this.frame ||= requestAnimationFrame(() => this.paint());
  }

  // All rows, or those of the given positions, have changed.
  refresh(places) {
    const end = this.node.scrollTop > 0 && this.node.scrollHeight - this.node.scrollTop - this.node.clientHeight < 48;
    if (places) for (const place of places) this.drop(place);
    else for (const place of [...this.drawn.keys()]) this.drop(place);
    this.layout();
    if (this.follow && end) this.node.scrollTop = this.node.scrollHeight;
    this.schedule();
  }

  drop(place) {
    const node = this.drawn.get(place);
    if (!node) return;
    if (node.contains(document.activeElement)) this.refocus = place;
    this.sizes.unobserve(node);
    node.remove();
    this.drawn.delete(place);
  }

  layout() {
    const count = this.count();
    this.tops.length = count + 1;
    let top = 0;
    for (let place = 0; place < count; place++) {
      this.tops[place] = top;
      top += this.heights[place] || this.estimate;
    }
    this.tops[count] = top;
    this.inner.style.height = `${top}px`;
  }

  place(y) {
    let low = 0, high = this.count();
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.tops[middle + 1] <= y) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  paint() {
    this.frame = 0;
    if (this.tops.length !== this.count() + 1) this.layout();
    const top = this.node.scrollTop, room = this.node.clientHeight || 600;
    const first = Math.max(0, this.place(top) - 6), last = Math.min(this.count(), this.place(top + room) + 7);
    for (const place of [...this.drawn.keys()]) if (place < first || place >= last) this.drop(place);
    for (let place = first; place < last; place++) {
      if (!this.drawn.has(place)) this.draw(place);
      this.drawn.get(place).style.transform = `translateY(${this.tops[place]}px)`;
    }
    if (this.onview) this.onview(this.place(top), Math.max(first, this.place(top + room)));
  }

  draw(place) {
    const node = this.row(place);
    node.classList.add("vrow");
    node.setAttribute("role", "listitem");
    node.setAttribute("aria-setsize", this.count());
    node.setAttribute("aria-posinset", place + 1);
    node.tabIndex = -1;
    node.place = place;
    let before = place - 1;
    while (before >= 0 && place - before < 60 && !this.drawn.has(before)) before--;
    const sibling = this.drawn.get(before);
    if (sibling) sibling.after(node);
    else this.inner.prepend(node);
    this.drawn.set(place, node);
    this.sizes.observe(node);
    if (this.refocus === place) {
      this.refocus = undefined;
      node.focus({ preventScroll: true });
    }
  }

  measure(seen) {
    let above = 0, changed = false;
    const edge = this.node.scrollTop;
    for (const { target } of seen) {
      if (target === this.node || target.place === undefined || !target.isConnected) { changed = true; continue; }
      const height = target.offsetHeight, before = this.heights[target.place] || this.estimate;
      if (!height || height === before) continue;
      if (this.tops[target.place] + before <= edge) above += height - before;
      this.heights[target.place] = height;
      changed = true;
    }
    if (!changed) return;
    this.layout();
    if (above) this.node.scrollTop = edge + above;
    this.schedule();
  }

  go(place) {
    if (this.tops.length !== this.count() + 1) this.layout();
    place = Math.max(0, Math.min(this.count() - 1, place));
    const top = this.tops[place], room = this.node.clientHeight;
    if (top < this.node.scrollTop || this.tops[place + 1] > this.node.scrollTop + room) this.node.scrollTop = Math.max(0, top - 40);
    this.at = place;
    this.paint();
    this.drawn.get(place)?.focus({ preventScroll: true });
  }

  focused(event) {
    const node = event.target.closest(".vrow");
    if (node) this.at = node.place;
  }

  key(event) {
    if (event.target !== this.node && !event.target.classList.contains("vrow")) return;
    const page = Math.max(1, Math.floor(this.node.clientHeight / this.estimate) - 1);
    const steps = { ArrowDown: this.at + 1, ArrowUp: this.at - 1, PageDown: this.at + page, PageUp: this.at - page, Home: 0, End: this.count() - 1 };
    if (event.target === this.node && event.key.startsWith("Arrow")) steps[event.key] = this.place(this.node.scrollTop + 1);
    if (event.key in steps) this.go(steps[event.key]);
    else if (event.key === "Enter" || event.key === " ") event.target.querySelector("button, summary, a")?.click();
    else return;
    event.preventDefault();
  }
}
